"""A stream of measurements: the write speed of every partition, once per interval.

A recorded stream is read from CSV: a header row of partition names, then one row of bytes/s per
measurement. A wrong file is one error with its line and column.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from penstock.errors import UsageError
from penstock.model import TopicPartition

PARTITIONS_MAX = 100_000
SPEED_BYTES_PER_S_MAX = 1e18
_FIELD_LENGTH_SHOWN_MAX = 40
_REMEDY = "A stream has a header row of topic-partition names, then rows of bytes/s."


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows are measurements, columns are partitions in the order of `partitions`."""

    partitions: tuple[TopicPartition, ...]
    rows: tuple[tuple[float, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def speeds(self, measurement: int) -> dict[TopicPartition, float]:
        return dict(zip(self.partitions, self.rows[measurement], strict=True))


def read_stream(path: Path) -> Stream:
    """Read a CSV; raises UsageError that names the line and the column."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _parse(path, csv.reader(file, strict=True))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason}", remedy=_REMEDY) from error


def _parse(path: Path, reader: Iterator[list[str]]) -> Stream:
    lines = _numbered(path, reader)
    header = next(lines, None)
    if header is None:
        raise UsageError(f"{path} is empty", remedy=_REMEDY)
    partitions = _header(path, header[1])
    rows: list[tuple[float, ...]] = []
    blank_at = 0
    for line, fields in lines:
        if not fields:
            blank_at = blank_at or line
            continue
        if blank_at:
            raise _wrong(path, blank_at, 1, "the row is empty")
        rows.append(_row(path, line, fields, partitions))
    if not rows:
        raise UsageError(f"{path} has a header but no measurement", remedy=_REMEDY)
    return Stream(partitions, tuple(rows))


def _numbered(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    line = 0
    try:
        for fields in reader:
            line += 1
            yield line, fields
    except csv.Error as error:
        raise _wrong(path, line + 1, 1, f"not CSV: {error}") from error


def _header(path: Path, fields: Sequence[str]) -> tuple[TopicPartition, ...]:
    if len(fields) > PARTITIONS_MAX:
        raise _wrong(path, 1, PARTITIONS_MAX + 1, f"more than {PARTITIONS_MAX} partitions")
    if not any(field.strip() for field in fields):
        raise _wrong(path, 1, 1, "the header names no partition")
    seen: dict[TopicPartition, int] = {}
    for column, field in enumerate(fields, start=1):
        try:
            partition = TopicPartition.parse(field.strip())
        except ValueError as error:
            raise _wrong(path, 1, column, _short(str(error))) from error
        first = seen.setdefault(partition, column)
        if first != column:
            raise _wrong(path, 1, column, f"{partition} is already in column {first}")
    return tuple(seen)


def _row(
    path: Path, line: int, fields: Sequence[str], partitions: Sequence[TopicPartition]
) -> tuple[float, ...]:
    expected = len(partitions)
    if len(fields) < expected:
        missing = partitions[len(fields)]
        what = f"the row ends after {len(fields)} of {expected} speeds; {missing} is missing"
        raise _wrong(path, line, len(fields) + 1, what)
    if len(fields) > expected:
        what = f"the row has {len(fields)} speeds, the header {expected} partitions"
        raise _wrong(path, line, expected + 1, what)
    speeds: list[float] = []
    for column, field in enumerate(fields, start=1):
        try:
            speeds.append(_speed(field.strip()))
        except ValueError as error:
            what = f"{partitions[column - 1]}: {error}, got {_short(repr(field))}"
            raise _wrong(path, line, column, what) from error
    return tuple(speeds)


def _speed(text: str) -> float:
    """Whole numbers stay integers, so that they are exact at any size."""
    if text.isascii() and text.isdigit() and len(text) <= len(str(int(SPEED_BYTES_PER_S_MAX))):
        speed: float = int(text)
    else:
        try:
            speed = float(text.replace("_", "?"))
        except ValueError:
            raise ValueError("a speed is a number") from None
    if not isfinite(speed) or speed < 0:
        raise ValueError("a speed is a finite number >= 0")
    if speed > SPEED_BYTES_PER_S_MAX:
        raise ValueError(f"a speed is at most {SPEED_BYTES_PER_S_MAX:g} bytes/s")
    return speed


def _short(text: str) -> str:
    limit = _FIELD_LENGTH_SHOWN_MAX + 60
    return text if len(text) <= limit else f"{text[:limit]}..."


def _wrong(path: Path, line: int, column: int, what: str) -> UsageError:
    return UsageError(f"{path}, line {line}, column {column}: {what}", remedy=_REMEDY)
