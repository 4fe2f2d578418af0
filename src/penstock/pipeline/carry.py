"""Carries a batch of ranges into the lake: one commit a table, and as few Spark passes as can be.

    pipeline = Pipeline(settings, start_session(settings.spark))
    pipeline.next_offsets({partition: topic_id, ...})
    pipeline.carry(planned_ranges, writer=Writer(consumer_id, incarnation))

Tables are worked on side by side and fail apart: what happens to one partition is in the result,
and the others go on. `at_point` is told where a batch stands, so that tests can end a process
there.
"""

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pyspark.errors import PySparkException

from penstock.errors import PenstockError
from penstock.model import Epoch, TopicPartition
from penstock.pipeline.batch import (
    BatchResult,
    PlannedRange,
    Writer,
    batch_folder,
    witness_of,
)
from penstock.pipeline.diagnosis import in_our_words, ranges_not_there, what_workers_lack
from penstock.pipeline.failures import (
    LakeRefusedError,
    SparkFailedError,
    StaleWriterError,
    TransformationFailedError,
)
from penstock.pipeline.lake_commit import LakeTable, StaleLedgerError
from penstock.pipeline.ledger import last_epochs, next_offsets
from penstock.pipeline.record_source import KafkaSource, RecordSource
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.straight_pass import StraightPass, straight_tables
from penstock.pipeline.straight_session import StraightSession
from penstock.pipeline.table_batch import TableBatch, TableWork
from penstock.settings import Settings
from penstock.telemetry import get_logger


def _failures_of_an_own_jvm() -> tuple[type[Exception], ...]:
    """The bridge to Java comes with a whole Spark; a thin consumer has no JVM to lose."""
    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415 -- where it is installed
    except ModuleNotFoundError:
        return ()
    return (Py4JError,)


FAILURES: tuple[type[Exception], ...] = (
    PenstockError,
    PySparkException,
    ConnectionError,
    EOFError,
    *_failures_of_an_own_jvm(),
)
FILE_FAILURES: tuple[type[Exception], ...] = (*FAILURES, OSError)
Point = Callable[[str], None]
Work = Callable[[], BatchResult]


def _nothing(_: str) -> None:
    """No test is watching."""


class Pipeline:
    """Tables stay open between batches. One thread at a time may call `carry`."""

    def __init__(
        self,
        settings: Settings,
        session: Any,
        *,
        at_point: Point = _nothing,
        source: RecordSource | None = None,
    ) -> None:
        """Records come from Kafka, unless a test gives another `source`."""
        self._settings = settings
        self._session = session
        self._kafka: RecordSource = source or KafkaSource(settings, session)
        self._at_point = at_point
        self._numbers = itertools.count(time.time_ns())
        self._tables: dict[str, LakeTable] = {}
        self._lock = threading.Lock()
        self._log = get_logger(room="pipeline")
        self._straight = StraightSession(settings.spark, settings.lake.group, session)
        # Why Spark's workers cannot carry by themselves, once that is known.
        self._workers_lack = ""

    def table(self, name: str) -> LakeTable:
        with self._lock:
            if name not in self._tables:
                lake = self._settings.lake
                self._tables[name] = LakeTable(lake, name, has_fences=name == lake.dead_letters)
            return self._tables[name]

    def next_offsets(
        self, topic_ids: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, int | None]:
        """Where the ledger says each partition goes on; None where it has never been carried."""
        return next_offsets(self._settings.lake, topic_ids, self.table)

    def last_epochs(
        self, topic_ids: Mapping[TopicPartition, str], authority: str
    ) -> dict[TopicPartition, Epoch]:
        """Under which of the authority's epochs each partition was last carried, where known.

        To be read after `next_offsets`: then nobody stands at an offset that was committed under
        an epoch he has not seen.
        """
        return last_epochs(self._settings.lake, topic_ids, authority, self.table)

    def carry(self, planned: Sequence[PlannedRange], *, writer: Writer) -> BatchResult:
        """Carry what can be carried; nothing is raised that concerns only some partitions."""
        by_table: dict[str, list[PlannedRange]] = {}
        for one in sorted(planned):
            if len(one.range) or one.range.start != one.ledger_offset:
                name = self._settings.lake.table_of(one.partition.topic).table
                by_table.setdefault(name, []).append(one)
        together = self._straight_tables(by_table)
        works: list[Work] = []
        if together:
            straight = {name: by_table[name] for name in together}
            works.append(partial(self._carry_straight, straight, writer))
        works += [
            partial(self._carry_table, name, some, writer)
            for name, some in by_table.items()
            if name not in together
        ]
        return self._side_by_side(works)

    def interrupt(self) -> None:
        """Make the running batch fail; called from another thread."""
        self._straight.interrupt()
        self._session.interruptAll()

    def close(self) -> None:
        """Nothing more comes. The session itself is whoever's who started it."""
        self._straight.close()

    def _straight_tables(self, by_table: Mapping[str, Sequence[PlannedRange]]) -> list[str]:
        if not self._settings.spark.straight or self._workers_lack:
            return []
        is_local = TableStorage(self._settings.lake, "").is_local
        return straight_tables(self._settings.lake, by_table, is_local=is_local)

    def _side_by_side(self, works: Sequence[Work]) -> BatchResult:
        if len(works) <= 1:
            results = [work() for work in works]
        else:
            workers = min(self._settings.spark.tables_at_once, len(works))
            with ThreadPoolExecutor(workers, thread_name_prefix="penstock-table") as pool:
                results = list(pool.map(lambda work: work(), works))
        total = BatchResult()
        for result in results:
            total += result
        return total

    def _carry_straight(
        self, by_table: Mapping[str, Sequence[PlannedRange]], writer: Writer
    ) -> BatchResult:
        """Tables in one pass; if anything is wrong with it, each by itself, to find out what."""
        straight = StraightPass(
            self._straight,
            [
                (work := self._work(name), TableBatch(work, some, self._folder(some, writer)))
                for name, some in by_table.items()
            ],
        )
        try:
            files = straight.write()
        except FILE_FAILURES as error:
            straight.drop(error)
            self._workers_lack = what_workers_lack(error)
            if self._workers_lack:
                self._log.warning("workers_cannot_carry", why=self._workers_lack)
            return self._one_by_one(by_table, writer, error)

        def otherwise(batch: TableBatch, error: Exception) -> BatchResult:
            name = self._settings.lake.table_of(batch.planned[0].partition.topic).table
            return self._not_carried(name, batch, writer, error)

        return straight.commit(files, otherwise)

    def _one_by_one(
        self, by_table: Mapping[str, Sequence[PlannedRange]], writer: Writer, error: Exception
    ) -> BatchResult:
        """What one pass could not do is done by table, unless it can be done by none."""
        planned = [one for some in by_table.values() for one in some]
        try:
            wrong = ranges_not_there(self._kafka, planned)
        except PenstockError as unreachable:
            return BatchResult(failures={one.partition: unreachable for one in planned})
        said = in_our_words(error, ", ".join(by_table))
        if not wrong and isinstance(said, SparkFailedError):
            return BatchResult(failures={one.partition: said for one in planned})
        return self._side_by_side(
            [partial(self._carry_table, name, some, writer) for name, some in by_table.items()]
        )

    def _folder(self, planned: Sequence[PlannedRange], writer: Writer) -> str:
        number = next(self._numbers)
        return batch_folder(self._settings.lake.group, writer, number, witness_of(planned))

    def _carry_table(
        self, name: str, planned: Sequence[PlannedRange], writer: Writer
    ) -> BatchResult:
        """One table's ranges; on a failure those at fault are set apart and the rest goes on."""
        batch = TableBatch(self._work(name), planned, self._folder(planned, writer))
        try:
            return batch.run()
        except FAILURES as error:
            return self._not_carried(name, batch, writer, error)

    def _not_carried(
        self, name: str, batch: TableBatch, writer: Writer, error: Exception
    ) -> BatchResult:
        batch.drop(error)
        if isinstance(error, StaleLedgerError):
            lost = dict.fromkeys(error.stored, error)
            rest = frozenset(one.partition for one in batch.planned) - set(lost)
            return BatchResult(failures=lost, dropped=rest)
        return self._set_apart(name, batch.planned, writer, error)

    def _set_apart(
        self, name: str, planned: Sequence[PlannedRange], writer: Writer, error: Exception
    ) -> BatchResult:
        """Find whose fault it was: Kafka says so, or halving the ranges tells."""
        try:
            wrong = ranges_not_there(self._kafka, planned)
        except PenstockError as unreachable:
            return BatchResult(failures={one.partition: unreachable for one in planned})
        if wrong:
            left = [one for one in planned if one.partition not in wrong]
            result = BatchResult(failures=dict(wrong))
            return result + self._carry_table(name, left, writer) if left else result
        said = in_our_words(error, name)
        everybody = isinstance(said, (LakeRefusedError, SparkFailedError, StaleWriterError))
        if everybody or not isinstance(said, TransformationFailedError) or len(planned) == 1:
            return BatchResult(failures={one.partition: said for one in planned})
        middle = len(planned) // 2
        first = self._carry_table(name, planned[:middle], writer)
        return first + self._carry_table(name, planned[middle:], writer)

    def _work(self, name: str) -> TableWork:
        return TableWork(
            settings=self._settings,
            session=self._session,
            kafka=self._kafka,
            table=self.table(name),
            dead_letters=self.table(self._settings.lake.dead_letters),
            at_point=self._at_point,
        )
