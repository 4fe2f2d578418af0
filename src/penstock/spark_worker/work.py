"""What the driver asks of the workers, and what they answer. Plain values that can be pickled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

DATE_COLUMN = "date"
# Below this many offsets, cutting a range in two costs more than it brings.
OFFSETS_WORTH_CUTTING = 20_000


@dataclass(frozen=True, slots=True)
class RangeToRead:
    topic: str
    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class TableToWrite:
    """A topic's way into its table: the folder for its files and the columns they have."""

    folder: str
    columns: Sequence[str]
    is_dated: bool = False


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """What a task answers, one row a file."""

    topic: str
    path: str
    records: int
    decoded_bytes: int


@dataclass(frozen=True, slots=True)
class PassThroughWork:
    """One batch. `readers_name` tells readers of other topics apart, made-again ones included."""

    kafka: Mapping[str, str | int | float | bool]
    readers_name: str
    tasks: Sequence[Sequence[RangeToRead]]
    tables: Mapping[str, TableToWrite]
    compression: str
    silence_s_max: float


def divided(ranges: Sequence[RangeToRead], tasks: int) -> list[list[RangeToRead]]:
    """Shares of nearly the same size, one a task; a topic's ranges stay together where they can.

    Each topic in a share is a file, so with many topics whole topics are dealt out.
    """
    if len(ranges) < tasks and sum(map(len, ranges)) >= OFFSETS_WORTH_CUTTING:
        ranges = [piece for one in ranges for piece in _cut(one, tasks)]
    topics: dict[str, list[RangeToRead]] = {}
    for one in ranges:
        topics.setdefault(one.topic, []).append(one)
    units = list(topics.values()) if len(topics) >= 4 * tasks else [[one] for one in ranges]
    units.sort(key=lambda unit: (-sum(map(len, unit)), unit[0].topic, unit[0].partition))
    shares: list[list[RangeToRead]] = [[] for _ in range(tasks)]
    for unit in units:
        min(shares, key=lambda share: sum(map(len, share))).extend(unit)
    return [share for share in shares if share]


def _cut(one: RangeToRead, pieces: int) -> list[RangeToRead]:
    edges = [one.start + len(one) * number // pieces for number in range(pieces + 1)]
    return [replace(one, start=start, end=end) for start, end in pairwise(edges) if start < end]
