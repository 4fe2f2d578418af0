"""What a transformation is: your function between Kafka's records and the rows of a table. Public.

    from pyspark.sql import DataFrame, functions as F

    def decode(records: DataFrame) -> DataFrame:
        order = F.from_json(F.col("value").cast("string"), "id string, amount double")
        rows = records.withColumn("id", order["id"]).withColumn("amount", order["amount"])
        return rows.withColumn("_undecodable", F.when(F.col("id").isNull(), "not an order"))

The settings name it as `package.module:function`. `penstock.testing` runs it on records of a test.
docs/transformations.md goes through all of it. This module imports no Spark.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["RAW_COLUMNS", "UNDECODABLE", "Transformation"]

# The columns a transformation is given, as Spark's Kafka connector names them.
RAW_COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
# The column in which a transformation says why it cannot read a record; null for good records.
UNDECODABLE = "_undecodable"


class Transformation(Protocol):
    """A function from the raw records of a batch to the rows of the table.

    Penstock promises: the DataFrame has exactly `RAW_COLUMNS`. Each record of the batch is in it
    once; `key` and `value` are bytes or null. A batch has records of any number of partitions, and
    of all topics that share the table and this function.

    Penstock expects: the same rows for the same records whenever it runs, because a batch is
    repeated after a crash. To send records to the dead letters, the rows have the column
    `UNDECODABLE` and keep `topic`, `partition`, `offset`, `key` and `value`. The columns that
    `columns` and `partition_by` name in the settings are there. `penstock verify` needs
    `partition` and `offset`.
    """

    def __call__(self, records: "DataFrame", /) -> "DataFrame": ...
