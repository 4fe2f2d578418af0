"""Writes Kafka messages to Parquet files with the columns of Spark's connector, a file a table.

Each file is written where it stays, on a file system or in an object store.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.spark_worker.record_columns import (
    DATE_COLUMN,
    RECORD_COLUMNS,
    ROW_GROUP_BYTES,
    ZSTD_LEVEL,
    parquet_codec,
    stored_time_ms,
)
from penstock.spark_worker.work import TableToWrite, UnreadablePartition, WrittenPart

ANSWER_COLUMNS = {
    "topic": pa.string(),
    "path": pa.string(),
    "records": pa.int64(),
    "decoded_bytes": pa.int64(),
    "partition": pa.int64(),
    "reason": pa.string(),
}
# Called through C: Python's own quick call of a method does not notice that the library returns a
# broken list beside the error it sets for a name that is not UTF-8.
_HEADERS = methodcaller("headers")
_MS_A_DAY = 86_400_000
_FINISHED_AT_ONCE = 8
# Few different values, so a dictionary pays. The values of other columns differ.
_DICTIONARY = ("topic", "partition", "timestampType")
# A range of keys or values would put whole records into the footer, however large.
_WITH_RANGES = ("topic", "partition", "offset", "timestamp", "timestampType")


class UnreadableHeadersError(Exception):
    """A record of this partition has a header name that is not UTF-8."""

    def __init__(self, partition: int, offset: int) -> None:
        super().__init__(f"the record at offset {offset} has a header name that is not UTF-8")
        self.partition = partition


def _headers_of(messages: Sequence[Any]) -> list[Any]:
    """Ask each message once: the library ends the process when it is asked again after an error."""
    left = iter(messages)
    try:
        return [_HEADERS(one) for one in left]
    except (SystemError, UnicodeDecodeError) as error:
        failed = messages[len(messages) - sum(1 for _ in left) - 1]
        raise UnreadableHeadersError(failed.partition(), failed.offset()) from error


def columns_of(topic: str, messages: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """A topic's messages as columns. librdkafka counts timestamp types from 0, Java from -1."""
    stamps = [one.timestamp() for one in messages]
    made: dict[str, Callable[[], Any]] = {
        "key": lambda: [one.key() for one in messages],
        "value": lambda: [one.value() for one in messages],
        "topic": lambda: pa.repeat(pa.scalar(topic), len(messages)),
        "partition": lambda: [one.partition() for one in messages],
        "offset": lambda: [one.offset() for one in messages],
        "timestamp": lambda: [stored_time_ms(ms) * 1000 for _, ms in stamps],
        "timestampType": lambda: [kind - 1 for kind, _ in stamps],
        "headers": lambda: _headers_of(messages),
    }
    return [pa.array(made[name](), RECORD_COLUMNS[name]) for name in names]


class _LocalPlace:
    """A file on a file system."""

    def __init__(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path = self.sink = path

    def abandon(self) -> None:
        Path(self.path).unlink(missing_ok=True)


class _StoredPlace:
    """A file in an object store; nobody sees it before it is finished."""

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        # Imported only here: a lake on a file system needs none of it.
        from penstock.object_store.client import ObjectStore  # noqa: PLC0415 -- see above

        folder, _, name = path.rpartition("/")
        self.path = path
        self.sink = ObjectStore(folder, options).open_writer(name)

    def finish(self) -> None:
        self.sink.finish()

    def abandon(self) -> None:
        with suppress(OSError):  # what is left is thrown away by the store's own rule
            self.sink.abandon()


def _place(path: str, options: Mapping[str, str]) -> _LocalPlace | _StoredPlace:
    return _StoredPlace(path, options) if "://" in path else _LocalPlace(path)


class _OpenFile:
    """One file, and the rows that are not written to it yet."""

    def __init__(
        self,
        topic: str,
        place: _LocalPlace | _StoredPlace,
        names: Sequence[str],
        compression: str,
    ) -> None:
        self.topic = topic
        self.records = self.decoded_bytes = self.pending_bytes = 0
        self._names = names
        self._schema = pa.schema([(name, RECORD_COLUMNS[name]) for name in names])
        self._pending: list[Any] = []
        self.place = place
        self._writer = pq.ParquetWriter(
            place.sink,
            self._schema,
            compression=parquet_codec(compression),
            compression_level=ZSTD_LEVEL if compression == "zstd" else None,
            use_dictionary=[name for name in names if name in _DICTIONARY],
            write_statistics=[name for name in names if name in _WITH_RANGES],
        )

    def add(self, messages: Sequence[Any]) -> None:
        rows = pa.table(columns_of(self.topic, messages, self._names), schema=self._schema)
        self._pending.append(rows)
        self.pending_bytes += rows.nbytes
        self.records += len(messages)
        self.decoded_bytes += sum(map(len, messages))  # of the values
        self.decoded_bytes += sum(len(one.key() or b"") for one in messages)

    def flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending))
            self._pending, self.pending_bytes = [], 0

    def close(self) -> WrittenPart:
        self.flush()
        self._writer.close()
        return WrittenPart(self.topic, self.place.path, self.records, self.decoded_bytes)

    def abandon(self) -> None:
        self.place.abandon()
        with suppress(OSError, pa.ArrowException):  # of a disk that is full
            self._writer.close()


class ParquetFiles:
    """The files of one task; each is opened when its first rows come.

    Rows wait in memory until all files together hold a row group's worth; then the largest share
    is written. A partition whose records cannot be made into rows is in `unreadable`, with why.
    """

    def __init__(
        self,
        tables: Mapping[str, TableToWrite],
        compression: str,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._tables = tables
        self._compression = compression
        self._storage_options = storage_options or {}
        self._open: dict[tuple[str, str], _OpenFile] = {}
        self.unreadable: dict[tuple[str, int], str] = {}

    def add(self, runs: Sequence[tuple[str, Sequence[Any]]]) -> None:
        for (topic, day), some in self._by_file(runs).items():
            self._add_readable(self._file(topic, day), some)
        while sum(one.pending_bytes for one in self._open.values()) > ROW_GROUP_BYTES:
            max(self._open.values(), key=lambda one: one.pending_bytes).flush()

    def close(self, *, without: Collection[str] = ()) -> list[WrittenPart]:
        """Write what still waits, and close every file; those of topics in `without` are removed.

        Records of one topic share a file: where one partition is unreadable, all are read again.
        """
        for file in self._open.values():
            if file.topic in without:
                file.abandon()
        left = [file for file in self._open.values() if file.topic not in without]
        parts = [file.close() for file in left]
        # Side by side: each waits for an answer of the object store.
        stored = [file.place for file in left if isinstance(file.place, _StoredPlace)]
        if stored:
            with ThreadPoolExecutor(_FINISHED_AT_ONCE) as pool:
                list(pool.map(_StoredPlace.finish, stored))
        return parts

    def _add_readable(self, file: _OpenFile, messages: Sequence[Any]) -> None:
        """Add what can be added, and note the partitions of the rest; there may be several."""
        left = messages
        while left:
            try:
                file.add(left)
            except UnreadableHeadersError as error:
                self.unreadable[file.topic, error.partition] = str(error)
                left = [one for one in left if one.partition() != error.partition]
            else:
                break

    def abandon(self) -> None:
        for file in self._open.values():
            file.abandon()

    def _by_file(
        self, runs: Sequence[tuple[str, Sequence[Any]]]
    ) -> dict[tuple[str, str], list[Any]]:
        found: dict[tuple[str, str], list[Any]] = {}
        for topic, messages in runs:
            if self.unreadable and (topic, messages[0].partition()) in self.unreadable:
                continue
            if not self._tables[topic].is_dated:
                found.setdefault((topic, ""), []).extend(messages)
                continue
            for number, some in groupby(messages, key=_day_number):
                found.setdefault((topic, _day(number)), []).extend(some)
        return found

    def _file(self, topic: str, day: str) -> _OpenFile:
        if (topic, day) not in self._open:
            table = self._tables[topic]
            folder = f"{table.folder}/{DATE_COLUMN}={day}" if day else table.folder
            names = [name for name in table.columns if name in RECORD_COLUMNS]
            place = _place(f"{folder}/part-{uuid.uuid4().hex}.parquet", self._storage_options)
            self._open[topic, day] = _OpenFile(topic, place, names, self._compression)
        return self._open[topic, day]


def _day_number(message: Any) -> int:
    return stored_time_ms(message.timestamp()[1]) // _MS_A_DAY


def _day(number: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(days=number)).isoformat()


def record_rows(topic: str, messages: Sequence[Any]) -> Any:
    """A topic's messages as Arrow, with all columns of a record.

    Only what Spark's connector cannot read comes this way, so there is no other way left for a
    record with a header name that is not UTF-8: it is carried without its headers.
    """
    names = [name for name in RECORD_COLUMNS if name != "headers"]
    columns = columns_of(topic, messages, names)
    headers = pa.array([_readable_headers(one) for one in messages], RECORD_COLUMNS["headers"])
    columns.insert(list(RECORD_COLUMNS).index("headers"), headers)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(RECORD_COLUMNS.items())))


def _readable_headers(message: Any) -> Any:
    try:
        return _HEADERS(message)
    except (SystemError, UnicodeDecodeError):  # the library's, for a name that is not UTF-8
        return None


def answer_rows(parts: Sequence[WrittenPart], unreadable: Sequence[UnreadablePartition]) -> Any:
    """A task's answer as Arrow: rows of files have no reason, those of partitions no path."""
    rows = [(one.topic, one.path, one.records, one.decoded_bytes, None, None) for one in parts]
    failed = [(one.topic, None, None, None, one.partition, one.reason) for one in unreadable]
    columns = list(zip(*rows, *failed, strict=True)) or [()] * len(ANSWER_COLUMNS)
    schema = pa.schema(list(ANSWER_COLUMNS.items()))
    return pa.RecordBatch.from_arrays(
        [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
