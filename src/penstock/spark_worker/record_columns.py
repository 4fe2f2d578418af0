"""The columns of a raw Kafka record and how Parquet stores them, for both ways into the lake.

Names, types and meanings are those of Spark's Kafka connector, so that a table may get rows by
either way. What is decided here (column types, row group size, compression level) is decided
nowhere else.
"""

import pyarrow as pa

DATE_COLUMN = "date"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
RECORD_COLUMNS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": _HEADERS,
}
# A table may also be divided by the day of each record, which is made from its timestamp.
TABLE_COLUMNS = {**RECORD_COLUMNS, DATE_COLUMN: pa.date32()}

# Kafka's time is any number of milliseconds. A time outside these years is set to the nearest end:
# many readers know no later year, and Spark's connector takes earlier times for another calendar's.
TIMESTAMP_MS_MIN = -2_208_988_800_000  # 1900-01-01T00:00:00Z
TIMESTAMP_MS_MAX = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z

# A task holds one row group in memory. At 128 MiB, Parquet's own choice, two tasks and their
# readers do not fit into 1 GB; compaction makes larger row groups for those who read.
ROW_GROUP_BYTES = 16 * 2**20
# Spark would take 3, which is slower on records that compress badly.
ZSTD_LEVEL = 1


def stored_time_ms(time_ms: int) -> int:
    """The time as tables hold it."""
    return min(max(time_ms, TIMESTAMP_MS_MIN), TIMESTAMP_MS_MAX)


def parquet_codec(compression: str) -> str:
    """The codec of `lake.compression`, as pyarrow names it."""
    return "none" if compression == "uncompressed" else compression
