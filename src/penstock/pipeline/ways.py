"""Which way a range takes from Kafka into files, and which one when that way fails.

What the quick way cannot carry takes the other: all tables while Spark's workers lack our code, a
single partition while they cannot read its records. Both are tried again after `workers_retry`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto

from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.diagnosis import connector_cannot_read, what_workers_lack
from penstock.pipeline.failures import (
    KafkaNotReadError,
    LakeAwayError,
    SchemaChangedError,
    SparkFailedError,
    TableNotServedError,
    WorkerDiedError,
)
from penstock.pipeline.pass_through_tables import pass_through_tables
from penstock.settings import Settings
from penstock.telemetry import get_logger

RangesByTable = Mapping[str, Sequence[PlannedRange]]
# Failures of the pass-through way that the way through a DataFrame would meet too.
_SAME_BOTH_WAYS = (SparkFailedError, SchemaChangedError, TableNotServedError, LakeAwayError)
_WORKERS_OWN = (KafkaNotReadError, WorkerDiedError)


class Way(Enum):
    """How records get into files."""

    PASS_THROUGH = auto()  # Spark's Python workers read and write
    CONNECTOR = auto()  # Spark's connector reads, Spark writes
    WORKERS_READ = auto()  # Spark's Python workers read, Spark writes
    IN_PARTS = auto()  # by the ways above, part by part: a record of the range fails


class Ways:
    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._log = get_logger(component="pipeline")
        # Why Spark's workers cannot run the pass-through way; empty if they can.
        self._workers_lack = ""
        self._workers_tried_again_at_s = 0.0
        # Partitions whose records Spark's workers could not read, and until when.
        self._unreadable_until_s: dict[TopicPartition, float] = {}
        # Partitions with dead letters that are kept already, while their table's ledger has not
        # reached them. Only the way through a DataFrame leaves those records out.
        self.has_kept: frozenset[TopicPartition] = frozenset()
        # Of partitions that are carried in parts: how many offsets to try next.
        self.part_sizes: dict[TopicPartition, int] = {}
        # Where the last batch began in which the workers of Spark failed.
        self._failed_at: dict[TopicPartition, int] = {}
        # Of partitions with a single record, which fails: its offset, and how often.
        self.failed_alone: dict[TopicPartition, tuple[int, int]] = {}

    def groups(self, by_table: RangesByTable) -> list[tuple[RangesByTable, Way]]:
        """What is carried together: all that pass through, and each other table by itself."""
        quick = set(self.quick_tables(by_table))
        together: dict[str, Sequence[PlannedRange]] = {}
        groups: list[tuple[RangesByTable, Way]] = []
        for name, planned in by_table.items():
            ways: dict[Way, list[PlannedRange]] = {}
            for one in planned:
                ways.setdefault(self._way_of(one, is_quick=name in quick), []).append(one)
            for way, some in ways.items():
                if way is Way.PASS_THROUGH:
                    together[name] = some
                elif way is Way.IN_PARTS:
                    groups += [({name: [one]}, way) for one in some]
                else:
                    groups.append(({name: some}, way))
        return ([(together, Way.PASS_THROUGH)] if together else []) + groups

    def _way_of(self, one: PlannedRange, *, is_quick: bool) -> Way:
        if one.partition in self.part_sizes and len(one.range):
            return Way.IN_PARTS
        until_s = self._unreadable_until_s.get(one.partition)
        if until_s is not None and self._clock() >= until_s:
            del self._unreadable_until_s[one.partition]
            until_s = None
        is_quick = is_quick and until_s is None and one.partition not in self.has_kept
        return Way.PASS_THROUGH if is_quick else Way.CONNECTOR

    def passes_through(self, name: str, one: PlannedRange) -> bool:
        """Whether a part of this range may take the pass-through way, however it failed before."""
        return one.partition not in self.has_kept and bool(self.quick_tables({name: [one]}))

    def quick_tables(self, by_table: RangesByTable) -> list[str]:
        """The tables that may take the pass-through way now."""
        if self._workers_lack and self._clock() >= self._workers_tried_again_at_s:
            self._workers_lack = ""
        if not self._settings.spark.pass_through or self._workers_lack:
            return []
        return pass_through_tables(self._settings.lake, by_table)

    def other(self, way: Way, error: BaseException, reason: PenstockError) -> Way | None:
        """The way that may carry what this one cannot."""
        if way is Way.PASS_THROUGH:
            self._note_what_workers_lack(error)
            # Kafka has just answered: if only the workers do not get its records, or die of one,
            # others may.
            is_same = isinstance(reason, _SAME_BOTH_WAYS) and not isinstance(reason, _WORKERS_OWN)
            return None if is_same else Way.CONNECTOR
        if way is Way.CONNECTOR and connector_cannot_read(error):
            return Way.WORKERS_READ
        return None

    def is_first_failure(self, planned: Sequence[PlannedRange]) -> bool:
        """Whether Spark's workers did not fail with these ranges before.

        Then something from outside may have been the reason, and the same way is tried again. The
        other way is slow, and takes a Spark server tens of seconds when it is used first.
        """
        is_first = all(self._failed_at.get(one.partition) != one.range.start for one in planned)
        self._failed_at |= {one.partition: one.range.start for one in planned}
        return is_first

    def note_unreadable(self, partitions: Collection[TopicPartition]) -> None:
        """For a while they take the other way at once."""
        until_s = self._clock() + self._settings.spark.workers_retry
        self._unreadable_until_s |= dict.fromkeys(partitions, until_s)

    def _note_what_workers_lack(self, error: BaseException) -> None:
        self._workers_lack = what_workers_lack(error)
        if self._workers_lack:
            # By then they may have our code, or the server may have been restarted.
            self._workers_tried_again_at_s = self._clock() + self._settings.spark.workers_retry
            self._log.warning("workers_cannot_carry", why=self._workers_lack)
