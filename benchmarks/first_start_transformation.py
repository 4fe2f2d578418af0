"""The transformation of `first_start.py`: JSON into typed columns, as a first user writes it."""

from typing import Any

from pyspark.sql import functions

_FIELDS = "id long, customer string, amount double, at_ms long, note string"


def orders(raw: Any) -> Any:
    content = functions.from_json(functions.col("value").cast("string"), _FIELDS)
    rows = raw.select("*", content["id"].alias("id"), content["customer"].alias("customer"))
    rows = rows.withColumn("amount", content["amount"]).withColumn("at_ms", content["at_ms"])
    rows = rows.withColumn("note", content["note"])
    broken = functions.when(functions.col("id").isNull(), functions.lit("not JSON with an id"))
    return rows.withColumn("_undecodable", broken)
