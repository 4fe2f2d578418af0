"""Functions as a user would write them, named in settings by tests."""

import sys
from typing import Any

from pyspark.sql import functions


def decode(raw: Any) -> Any:
    """JSON with an `id`; what is not that is marked undecodable."""
    content = functions.from_json(functions.col("value").cast("string"), "id string")
    rows = raw.withColumn("id", content["id"])
    broken = functions.when(functions.col("id").isNull(), functions.lit("not JSON with an id"))
    return rows.withColumn("_undecodable", broken)


def id_as_number(raw: Any) -> Any:
    """Gives `id` another type than `decode` does."""
    return raw.withColumn("id", functions.col("offset"))


def fails_in_a_consumer(raw: Any) -> Any:
    """Passes a trial, and raises where it matters."""
    if "consumer" in sys.argv:
        raise ValueError("not in a consumer")
    return raw


def decode_all(raw: Any) -> Any:
    """A later version of `decode`, which can read everything."""
    return raw.withColumn("id", functions.col("value").cast("string"))


def mark_all(raw: Any) -> Any:
    """Marks every record undecodable, so that Spark sees that no row can come of it."""
    return raw.withColumn("_undecodable", functions.lit("never"))


def keep_none(raw: Any) -> Any:
    """Drops every record on purpose."""
    return raw.limit(0)


def fails_on_poison(raw: Any) -> Any:
    """Raises while the records flow."""
    text = functions.col("value").cast("string")
    checked = functions.when(
        text.startswith("poison"), functions.raise_error(functions.lit("poisoned"))
    ).otherwise(text)
    return raw.withColumn("text", checked.cast("string"))


def upper_in_python(raw: Any) -> Any:
    """Runs Python for every record."""

    @functions.udf("string", useArrow=False)
    def upper(text: str) -> str:
        return text.upper()

    return raw.withColumn("text", upper(functions.col("value").cast("string")))


def by_kind(raw: Any) -> Any:
    """A column to partition by whose values need escaping in a path."""
    return raw.withColumn("kind", functions.concat(functions.lit("a:b c/"), "partition"))


def raises(_: Any) -> Any:
    raise ValueError("no such thing")


class Panic(BaseException):
    """What native code raises when it panics: no Exception."""


def panics(_: Any) -> Any:
    raise Panic("index out of bounds")


def exits(_: Any) -> Any:
    """Ends the process, as a library may that was written for the command line."""
    sys.exit(0)


def gives_nothing(_: Any) -> Any:
    return None


def with_far_times(raw: Any) -> Any:
    """Milliseconds, taken for seconds."""
    return raw.withColumn("at", functions.lit(1_790_000_000_000).cast("timestamp"))
