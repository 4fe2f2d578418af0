"""A transformation that takes a known time for each record, whatever else the machine does."""

import time
from typing import Any

from pyspark.sql import functions

# One task carries no more than 500 records a second.
SECONDS_PER_RECORD = 0.002


def _late(offset: int) -> int:
    time.sleep(SECONDS_PER_RECORD)
    return offset


def slowly(raw: Any) -> Any:
    """The records as they are, late."""
    return raw.withColumn("late", functions.udf(_late, "long")(functions.col("offset")))
