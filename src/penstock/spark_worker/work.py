"""What the driver asks of the workers, and what they answer. Plain values that can be pickled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

# Below this many offsets, dividing a range costs more than it gains.
OFFSETS_WORTH_CUTTING = 20_000
# From this many topics a task on, whole topics go to one task: each topic in a task is a file.
TOPICS_PER_TASK_KEPT_WHOLE = 4


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
    """Where a topic's files go and which columns they have."""

    # On a file system that the workers see, or a URL of an object store.
    folder: str
    columns: Sequence[str]
    is_dated: bool = False


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """One file that a task wrote."""

    topic: str
    path: str
    records: int
    decoded_bytes: int


@dataclass(frozen=True, slots=True)
class UnreadablePartition:
    """A partition that a task cannot carry, and why. Nothing of its topic is in the answer."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWork:
    """What to read. `reader_name` differs where topics differ, also when one was made again."""

    kafka: Mapping[str, str | int | float | bool]
    reader_name: str
    tasks: Sequence[Sequence[RangeToRead]]
    silence_s_max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PassThroughWork(ReadWork):
    """What to read, and the files to write it to."""

    tables: Mapping[str, TableToWrite]
    compression: str
    # Of an object store, without credentials: workers have those from their environment.
    storage_options: Mapping[str, str] = field(default_factory=dict)


def are_worth_cutting(ranges: int, offsets: int, tasks: int) -> bool:
    """Whether ranges are divided so that every task has work."""
    return ranges < tasks and offsets >= OFFSETS_WORTH_CUTTING


def divided(
    ranges: Sequence[RangeToRead], tasks: int, *, keeps_topics_whole: bool = False
) -> list[list[RangeToRead]]:
    """One share of nearly equal size for each task; with many topics, each stays in one share."""
    is_worth_cutting = are_worth_cutting(len(ranges), sum(map(len, ranges)), tasks)
    if is_worth_cutting and not keeps_topics_whole:
        ranges = [piece for one in ranges for piece in _cut(one, tasks)]
    topics: dict[str, list[RangeToRead]] = {}
    for one in ranges:
        topics.setdefault(one.topic, []).append(one)
    keeps_whole = keeps_topics_whole or len(topics) >= TOPICS_PER_TASK_KEPT_WHOLE * tasks
    units = list(topics.values()) if keeps_whole else [[one] for one in ranges]
    units.sort(key=lambda unit: (-sum(map(len, unit)), unit[0].topic, unit[0].partition))
    shares: list[list[RangeToRead]] = [[] for _ in range(tasks)]
    for unit in units:
        min(shares, key=lambda share: sum(map(len, share))).extend(unit)
    return [share for share in shares if share]


def _cut(one: RangeToRead, pieces: int) -> list[RangeToRead]:
    edges = [one.start + len(one) * number // pieces for number in range(pieces + 1)]
    return [replace(one, start=start, end=end) for start, end in pairwise(edges) if start < end]
