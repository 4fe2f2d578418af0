"""Which partitions get which load: `orders=1MB/s`, `orders:0-3,7=step:1MB/s,4MB/s,30s`, or a CSV.

Each partition gets the speed, not all of them together.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import UsageError
from penstock.laboratory.load.shapes import Replay, Shape, parse_shape
from penstock.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Target:
    partition: TopicPartition
    shape: Shape


def parse_target(text: str, partition_counts: Mapping[str, int], *, seed: int) -> list[Target]:
    """One argument of `penstock load`; topics and partitions must exist."""
    where, equals, shape_text = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r}: expected TOPIC[:PARTITIONS]=SHAPE, for instance orders=1MB/s.")
    topic, colon, numbers_text = where.partition(":")
    count = partition_counts.get(topic)
    if count is None:
        raise UsageError(
            f"There is no topic {topic!r}.",
            remedy="Create it with --create PARTITIONS, or name one that exists.",
        )
    try:
        numbers = _numbers(numbers_text, count) if colon else list(range(count))
        return [
            Target(
                TopicPartition(topic, number),
                parse_shape(shape_text, seed=f"{seed}/{topic}/{number}"),
            )
            for number in numbers
        ]
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}.") from error


def _numbers(text: str, count: int) -> list[int]:
    """`0-3,7` -> 0, 1, 2, 3, 7."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} is not a partition number or a range such as 0-3")
        numbers |= set(range(int(first), int(last or first) + 1)) if dash else {int(first)}
    beyond = [number for number in sorted(numbers) if number >= count]
    if beyond:
        raise ValueError(f"there is no partition {beyond[0]}; the topic has {count}")
    return sorted(numbers)


def replay_targets(file: Path, *, every_s: float) -> list[Target]:
    """A header of `topic-partition` names, then a row of bytes per second for every `every_s`."""
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.reader(opened))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Could not read {file}: {error}.") from error
    if len(rows) < 2:
        raise UsageError(f"{file}: a header and at least one row of speeds are needed.")
    header, *body = rows
    columns: list[list[float]] = [[] for _ in header]
    for line, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise UsageError(f"{file}, line {line}: {len(row)} columns, expected {len(header)}.")
        for column, cell in enumerate(row, start=1):
            columns[column - 1].append(_speed(file, line, column, cell))
    starts = tuple(index * every_s for index in range(len(body)))
    return [
        Target(_partition(file, column, name), Replay(starts, tuple(speeds)))
        for column, (name, speeds) in enumerate(zip(header, columns, strict=True), start=1)
    ]


def _partition(file: Path, column: int, name: str) -> TopicPartition:
    try:
        return TopicPartition.parse(name.strip())
    except ValueError as error:
        raise UsageError(f"{file}, line 1, column {column}: {error}.") from error


def _speed(file: Path, line: int, column: int, cell: str) -> float:
    try:
        speed = float(cell)
    except ValueError:
        speed = -1.0
    if not 0 <= speed < float("inf"):
        raise UsageError(f"{file}, line {line}, column {column}: {cell!r} is not a speed.")
    return speed
