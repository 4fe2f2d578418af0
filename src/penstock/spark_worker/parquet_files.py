"""Kafka messages -> Parquet files with the columns of Spark's Kafka source, a file a table.

The same names, types and meanings as Spark's connector gives, so that a table may get rows by
either way.
"""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.spark_worker.work import DATE_COLUMN, TableToWrite, WrittenPart

# Rows wait in memory until they make a row group of some size; all tables of a task together hold
# no more than this, and the largest of them is written first.
PENDING_BYTES_MAX = 16 * 2**20
_ZSTD_LEVEL = 1  # Spark would take 3, which is slower on records that compress badly
_CODECS = {"uncompressed": "none"}
_MS_A_DAY = 86_400_000
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": _HEADERS,
}
# Few different values: worth a dictionary. The others are unlike one another.
_DICTIONARY = ("topic", "partition", "timestampType")
# A range of keys or values would put a whole record into the footer, however large.
_WITH_RANGES = ("topic", "partition", "offset", "timestamp", "timestampType")


def columns_of(messages: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The messages as columns. Kafka's clients number the types of timestamps from 0 or from -1."""
    made = {
        "key": lambda: [one.key() for one in messages],
        "value": lambda: [one.value() for one in messages],
        "topic": lambda: [one.topic() for one in messages],
        "partition": lambda: [one.partition() for one in messages],
        "offset": lambda: [one.offset() for one in messages],
        "timestamp": lambda: [one.timestamp()[1] * 1000 for one in messages],
        "timestampType": lambda: [one.timestamp()[0] - 1 for one in messages],
        "headers": lambda: [one.headers() for one in messages],
    }
    return [pa.array(made[name](), _TYPES[name]) for name in names]


class _OpenFile:
    """One file, and the rows that wait to be written to it."""

    def __init__(self, topic: str, folder: str, names: Sequence[str], compression: str) -> None:
        self.topic = topic
        self.records = self.decoded_bytes = self.pending_bytes = 0
        self._names = names
        self._schema = pa.schema([(name, _TYPES[name]) for name in names])
        self._pending: list[Any] = []
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._path = f"{folder}/part-{uuid.uuid4().hex}.parquet"
        self._writer = pq.ParquetWriter(
            self._path,
            self._schema,
            compression=_CODECS.get(compression, compression),
            compression_level=_ZSTD_LEVEL if compression == "zstd" else None,
            use_dictionary=[name for name in names if name in _DICTIONARY],
            write_statistics=[name for name in names if name in _WITH_RANGES],
        )

    def add(self, messages: Sequence[Any]) -> None:
        rows = pa.table(columns_of(messages, self._names), schema=self._schema)
        self._pending.append(rows)
        self.pending_bytes += rows.nbytes
        self.records += len(messages)
        self.decoded_bytes += sum(len(one) for one in messages)
        self.decoded_bytes += sum(len(one.key() or b"") for one in messages)

    def flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending))
            self._pending, self.pending_bytes = [], 0

    def close(self) -> WrittenPart:
        self.flush()
        self._writer.close()
        return WrittenPart(self.topic, self._path, self.records, self.decoded_bytes)

    def abandon(self) -> None:
        self._writer.close()
        Path(self._path).unlink(missing_ok=True)


class ParquetFiles:
    """The files of one task, opened as their first rows come."""

    def __init__(self, tables: Mapping[str, TableToWrite], compression: str) -> None:
        self._tables = tables
        self._compression = compression
        self._open: dict[tuple[str, str], _OpenFile] = {}

    def add(self, messages: Sequence[Any]) -> None:
        for (topic, day), some in self._by_file(messages).items():
            self._file(topic, day).add(some)
        while sum(one.pending_bytes for one in self._open.values()) > PENDING_BYTES_MAX:
            max(self._open.values(), key=lambda one: one.pending_bytes).flush()

    def close(self) -> list[WrittenPart]:
        """Everything written; nothing is missing when this returns."""
        return [file.close() for file in self._open.values()]

    def abandon(self) -> None:
        for file in self._open.values():
            file.abandon()

    def _by_file(self, messages: Sequence[Any]) -> dict[tuple[str, str], Sequence[Any]]:
        only = next(iter(self._tables)) if len(self._tables) == 1 else None
        if only is not None and not self._tables[only].is_dated:
            return {(only, ""): messages}
        found: dict[tuple[str, str], list[Any]] = {}
        days: dict[int, str] = {}
        for one in messages:
            topic, day = one.topic(), ""
            if self._tables[topic].is_dated:
                number = one.timestamp()[1] // _MS_A_DAY
                day = days.get(number) or days.setdefault(number, _day(number))
            found.setdefault((topic, day), []).append(one)
        return {**found}

    def _file(self, topic: str, day: str) -> _OpenFile:
        if (topic, day) not in self._open:
            table = self._tables[topic]
            folder = f"{table.folder}/{DATE_COLUMN}={day}" if day else table.folder
            names = [name for name in table.columns if name in _TYPES]
            self._open[topic, day] = _OpenFile(topic, folder, names, self._compression)
        return self._open[topic, day]


def _day(number: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(days=number)).isoformat()


def part_rows(parts: Sequence[WrittenPart]) -> Any:
    """What a task answers, as Arrow."""
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([one.topic for one in parts], pa.string()),
            "path": pa.array([one.path for one in parts], pa.string()),
            "records": pa.array([one.records for one in parts], pa.int64()),
            "decoded_bytes": pa.array([one.decoded_bytes for one in parts], pa.int64()),
        }
    )
