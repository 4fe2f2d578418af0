"""A transformation whose table has a column of every type that file statistics know."""

from typing import Any

from pyspark.sql import functions


def typed(raw: Any) -> Any:
    """The value is JSON; a record without a price gets NaN."""
    order = functions.from_json(
        functions.col("value").cast("string"),
        "id long, price double, paid boolean, day date, amount decimal(20,2), note string",
    )
    return raw.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        order["id"].alias("id"),
        functions.coalesce(order["price"], functions.lit("NaN").cast("double")).alias("price"),
        order["paid"].alias("paid"),
        order["day"].alias("day"),
        order["amount"].alias("amount"),
        order["note"].alias("note"),
        functions.lit(None).cast("string").alias("nothing"),
        functions.struct(order["id"].alias("id"), order["note"].alias("note")).alias("inner"),
    )
