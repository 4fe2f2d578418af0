"""Carries a batch of ranges into the lake: one commit for each table, in few Spark jobs.

    pipeline = Pipeline(settings, start_session(settings.spark))
    pipeline.next_offsets({partition: topic_id, ...})
    pipeline.carry(planned_ranges, writer=Writer(consumer_id, incarnation))

The ranges are grouped by table, and each table goes one of two ways (see `run_batch`). Tables run
side by side and fail apart: the result says what happened to each partition, and the others go on.
`at_point` is called with the name of each point a batch passes, so that tests can stop it there.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.pipeline.batch import (
    BatchResult,
    Claim,
    PlannedRange,
    Writer,
    all_failed,
    batch_folder,
    reference_range_of,
)
from penstock.pipeline.checkpoints import CheckpointMaker
from penstock.pipeline.commit_watch import UNWATCHED, CommitWatch
from penstock.pipeline.dataframe_writer import DataFrameWriter
from penstock.pipeline.dead_letters import ledger_of_dead_letters
from penstock.pipeline.diagnosis import as_penstock_error, ranges_not_there, topic_without_id
from penstock.pipeline.failures import (
    ENDS_THE_PROCESS,
    PartitionsUnreadableError,
    ReadNotPermittedError,
    RecordUnreadableError,
    SchemaChangedError,
    SparkMemoryError,
    TransformationFailedError,
    UnforeseenError,
    WorkerDiedError,
)
from penstock.pipeline.joint_table import HandOver, JointTable
from penstock.pipeline.lake_commit import LakeTable, StaleLedgerError
from penstock.pipeline.ledger import LedgerView, ledger_not_read, next_offsets, read_ledger
from penstock.pipeline.narrowing import OF_ONE_RECORD, Narrowing, add_dead_letter
from penstock.pipeline.open_tables import OpenTables
from penstock.pipeline.pass_through_session import PassThroughSession
from penstock.pipeline.pass_through_writer import PassThroughWriter
from penstock.pipeline.record_source import KafkaSource, RecordContent, RecordSource
from penstock.pipeline.run_batch import BatchRun, FileWriter, TableBatch
from penstock.pipeline.ways import RangesByTable, Way, Ways
from penstock.settings import Settings
from penstock.telemetry import get_logger

Point = Callable[[str], None]
_NO_CLAIM = object()
_FOUND_BY_HALVING = (
    TransformationFailedError,
    ReadNotPermittedError,
    SparkMemoryError,
    *OF_ONE_RECORD,
)


def _ignore(_: str) -> None:
    """Do nothing: only a test acts at a point."""


class Pipeline:
    """Tables stay open between batches. One thread at a time may call `carry`."""

    def __init__(
        self,
        settings: Settings,
        session: Any,
        *,
        at_point: Point = _ignore,
        clock: Callable[[], float] = time.monotonic,
        source: RecordSource | None = None,
        watch: CommitWatch = UNWATCHED,
        hand_over: HandOver | None = None,
    ) -> None:
        """Records come from Kafka, unless a test gives another `source`.

        Without `hand_over` every batch is committed here.
        """
        self._hand_over = hand_over
        self._settings = settings
        self._clock = clock
        self._session = session
        self._kafka: RecordSource = source or KafkaSource(settings, session)
        self._at_point = at_point
        self._numbers = itertools.count(time.time_ns())
        self._checkpoints, self._watch = CheckpointMaker(settings.lake), watch
        self._tables = OpenTables(self._open_table, settings.lake.open_tables)
        self._log = get_logger(component="pipeline")
        self._pass_through = PassThroughSession(settings.spark, settings.lake.group, session)
        self._ways = Ways(settings, lambda: self._clock())  # noqa: PLW0108 -- a test sets another
        # The claim under which dead letters of each partition were looked for.
        self._claims_looked_up: dict[TopicPartition, Claim | None] = {}
        # Partitions that are carried in parts now.
        self._in_parts, self._is_calm = set[TopicPartition](), False

    def table(self, name: str) -> LakeTable:
        return self._tables.get(name)

    def _open_table(self, name: str) -> LakeTable:
        lake, note = self._settings.lake, self._checkpoints.committed
        fenced = name == lake.dead_letter_table
        return JointTable(lake, name, has_fences=fenced, on_commit=note, watch=self._watch)

    def next_offsets(
        self, topic_ids: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, int | None]:
        """The ledger's offset of each partition; None where it was never carried."""
        return next_offsets(self._settings.lake, topic_ids, self.table)

    def read_ledger(
        self, topic_ids: Mapping[TopicPartition, str], authority: str | None
    ) -> LedgerView:
        """Offsets and epochs of each partition; a table that cannot be read fails by itself."""
        view = read_ledger(self._settings.lake, topic_ids, authority, self.table)
        for name in {self._settings.lake.table_of(one.topic).table for one in view.failures}:
            self._tables.forget(name)
        return view

    def carry(
        self, planned: Sequence[PlannedRange], *, writer: Writer, is_calm: bool = False
    ) -> BatchResult:
        """Carry what can be carried, a file a table if `is_calm`; failures are in the result."""
        self._is_calm = is_calm
        by_table: dict[str, list[PlannedRange]] = {}
        refused: dict[TopicPartition, PenstockError] = {
            one.partition: topic_without_id(one) for one in planned if not one.has_topic_id
        }
        with_work = [
            one
            for one in sorted(planned)
            if one.partition not in refused
            and (len(one.range) or one.range.start != one.ledger_offset)
        ]
        refused |= self._find_kept_dead_letters(with_work)
        for one in with_work:
            if one.partition not in refused:
                name = self._settings.lake.table_of(one.partition.topic).table
                by_table.setdefault(name, []).append(one)
        result = self._side_by_side(self._ways.groups(by_table), writer)
        return BatchResult(failures=refused) + result

    def _find_kept_dead_letters(
        self, planned: Sequence[PlannedRange]
    ) -> dict[TopicPartition, PenstockError]:
        """Once per start of a partition: look whether dead letters of the range are kept already.

        An earlier owner may have kept a record, and died before its table's commit. The way
        through a DataFrame leaves such a record out. While the dead letters cannot be read, the
        partitions in the answer must wait: a record that is kept would also land in its table.
        """
        looked_up = self._claims_looked_up
        new = [one for one in planned if looked_up.get(one.partition, _NO_CLAIM) != one.claim]
        if not new:
            return {}
        lake = self._settings.lake
        try:
            ledger = ledger_of_dead_letters(self.table(lake.dead_letter_table), lake.group, new)
        except ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001 -- see ENDS_THE_PROCESS
            self._tables.forget(lake.dead_letter_table)
            reason = ledger_not_read(lake.dead_letter_table, error)
            self._log.warning("dead_letters_not_read", error=str(reason))
            return {one.partition: reason for one in new}
        ahead = {one.partition for one in new if (ledger[one.partition] or 0) > one.range.start}
        self._ways.has_kept = (self._ways.has_kept - {one.partition for one in new}) | ahead
        looked_up |= {one.partition: one.claim for one in new if one.partition not in ahead}
        return {}

    def interrupt(self) -> None:
        """Make the running batch fail; called from another thread."""
        self._pass_through.interrupt()
        self._session.interruptAll()

    def close(self) -> None:
        """Release what the pipeline opened. The caller owns the Spark session."""
        self._pass_through.close()
        self._checkpoints.close()

    def _side_by_side(
        self, groups: Sequence[tuple[RangesByTable, Way]], writer: Writer
    ) -> BatchResult:
        """Run each group of tables as a batch of its own."""
        if len(groups) <= 1:
            results = [self._run(tables, writer, way) for tables, way in groups]
        else:
            workers = min(self._settings.spark.tables_at_once, len(groups))
            with ThreadPoolExecutor(workers, thread_name_prefix="penstock-table") as pool:
                runs = pool.map(lambda group: self._run(group[0], writer, group[1]), groups)
                results = list(runs)
        return sum(results, start=BatchResult())

    def _run(self, by_table: RangesByTable, writer: Writer, way: Way) -> BatchResult:
        """One batch: the steps are in `run_batch`, what a failure leads to is in `_failed`."""
        try:
            if way is Way.IN_PARTS:
                ((name, (one,)),) = by_table.items()
                return self._carry_in_parts(name, one, writer)
            on_failure = partial(self._failed, writer, way)
            return BatchRun(self._writer(way), self._kafka, self._at_point, on_failure).run(
                [self._table_batch(name, some, writer) for name, some in by_table.items()]
            )
        except ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001 -- raised while a failure was dealt with
            planned = [one for some in by_table.values() for one in some]
            return all_failed(planned, self._reason(error, by_table))

    def _writer(self, way: Way) -> FileWriter:
        if way is Way.PASS_THROUGH:
            return PassThroughWriter(self._settings, self._pass_through, is_calm=self._is_calm)
        return DataFrameWriter(
            self._settings,
            self._session,
            self._kafka,
            self.table(self._settings.lake.dead_letter_table),
            self._at_point,
            reads_in_workers=way is Way.WORKERS_READ,
            has_kept=self._ways.has_kept,
            is_calm=self._is_calm,
        )

    def _table_batch(
        self, name: str, planned: Sequence[PlannedRange], writer: Writer
    ) -> TableBatch:
        lake, number = self._settings.lake, next(self._numbers)
        folder = batch_folder(lake.group, writer, number, reference_range_of(planned))
        return TableBatch(lake, self.table(name), planned, folder, hand_over=self._hand_over)

    def _failed(
        self, writer: Writer, way: Way, tables: Sequence[TableBatch], error: BaseException
    ) -> BatchResult:
        """Find the partitions at fault and carry the others."""
        self._drop(tables, error)
        planned = [one for table in tables for one in table.planned]
        if isinstance(error, StaleLedgerError):
            lost = dict.fromkeys(error.stored, error)
            return BatchResult(
                failures=lost, dropped=frozenset(one.partition for one in planned) - set(lost)
            )
        try:
            wrong = ranges_not_there(self._kafka, planned)
        except PenstockError as unreachable:
            return all_failed(planned, unreachable)
        by_table = {table.table.name: table.planned for table in tables}
        if wrong:
            left = {
                name: there
                for name, some in by_table.items()
                if (there := [one for one in some if one.partition not in wrong])
            }
            rest = self._run(left, writer, way) if left else BatchResult()
            return BatchResult(failures=dict(wrong)) + rest
        if isinstance(error, PartitionsUnreadableError):
            # They take the other way, now and for a while. The others stay on the quick way.
            self._ways.note_unreadable(error.partitions)
            return self._side_by_side(self._ways.groups(by_table), writer)
        is_committing = any(table.is_committing for table in tables)
        reason = self._reason(error, by_table)
        self._log.warning("batch_failed", tables=sorted(by_table), way=way.name, error=str(reason))
        tried = None if is_committing else self._tried_again(by_table, error, reason, writer, way)
        return all_failed(planned, reason) if tried is None else tried

    def _tried_again(
        self,
        by_table: RangesByTable,
        error: BaseException,
        reason: PenstockError,
        writer: Writer,
        way: Way,
    ) -> BatchResult | None:
        """By the same way, by another, or without what is at fault; None if nothing can help."""
        planned = [one for some in by_table.values() for one in some]
        if isinstance(reason, WorkerDiedError) and self._is_first_failure(planned):
            return self._run(by_table, writer, way)
        other = self._ways.other(way, error, reason)
        if other is not None:
            return self._side_by_side(
                [({name: some}, other) for name, some in by_table.items()], writer
            )
        return self._narrowed(by_table, reason, writer, way)

    def _is_first_failure(self, planned: Sequence[PlannedRange]) -> bool:
        """While a record is searched for, workers have failed with its range already."""
        is_searched = any(one.partition in self._in_parts for one in planned)
        return not is_searched and self._ways.is_first_failure(planned)

    def _reason(self, error: BaseException, by_table: RangesByTable) -> PenstockError:
        topics = {one.partition.topic for some in by_table.values() for one in some}
        has_transformation = any(self._settings.lake.table_of(one).transformation for one in topics)
        return as_penstock_error(error, ", ".join(by_table), has_transformation=has_transformation)

    def _narrowed(
        self, by_table: RangesByTable, reason: PenstockError, writer: Writer, way: Way
    ) -> BatchResult | None:
        """Carry all but the partition, or the record, that is at fault; None if it is not known."""
        planned = [one for some in by_table.values() for one in some]
        # The consumer makes the next batch smaller, down to single records.
        is_narrow = all(len(one.range) <= 1 for one in planned)
        if isinstance(reason, SparkMemoryError) and not is_narrow:
            return None
        if isinstance(reason, _FOUND_BY_HALVING) and len(planned) > 1:
            return self._halved(by_table, writer, way)
        is_of_one = isinstance(reason, (SparkMemoryError, *OF_ONE_RECORD)) and len(planned) == 1
        if is_of_one and planned[0].partition not in self._in_parts:
            return self._run(by_table, writer, Way.IN_PARTS)
        return None

    def _carry_in_parts(self, name: str, one: PlannedRange, writer: Writer) -> BatchResult:
        is_quick = self._ways.passes_through(name, one)

        def carry(part: PlannedRange) -> BatchResult:
            # A single record is tried by all ways; a longer part by the one that takes the most.
            is_quickest = is_quick and len(part.range) == 1
            way = Way.PASS_THROUGH if is_quickest else Way.CONNECTOR
            return self._run({name: [part]}, writer, way)

        def write(part: PlannedRange) -> int | None:
            return self._records_written(name, part, writer)

        def keep(part: PlannedRange, reason: PenstockError) -> None:
            self._keep_as_dead_letter(name, part, reason, writer)

        self._in_parts.add(one.partition)
        try:
            known = (self._ways.part_sizes, self._ways.failed_alone)
            return Narrowing(self._kafka, self._clock, carry, write, keep, *known).run(one)
        finally:
            self._in_parts.discard(one.partition)

    def _records_written(self, name: str, one: PlannedRange, writer: Writer) -> int | None:
        """How many records can be made into a file; None if they cannot. Nothing is committed."""
        table = self._table_batch(name, [one], writer)
        files = self._writer(Way.CONNECTOR)
        try:
            files.prepare(table)
            (written,) = files.write([table])
        except ENDS_THE_PROCESS:
            raise
        except BaseException:  # noqa: BLE001 -- see ENDS_THE_PROCESS
            return None
        finally:
            self._drop([table], UnforeseenError("only tried"))
        return written.records

    def _keep_as_dead_letter(
        self, name: str, one: PlannedRange, reason: PenstockError, writer: Writer
    ) -> None:
        lake = self._settings.lake
        table = self._table_batch(name, [one], writer)
        is_unreadable = isinstance(reason, RecordUnreadableError)
        content = RecordContent() if is_unreadable else self._kafka.content(one.range)
        try:
            table.table.require_current(table.moves)
            self._writer(Way.CONNECTOR).prepare(table)  # makes the table if this is its first
            letters = self.table(lake.dead_letter_table)
            add_dead_letter(letters, lake.group, table, str(reason), content)
            table.commit([], self._at_point)
        except BaseException as error:
            # The letter may be there without the commit.
            self._claims_looked_up.pop(one.partition, None)
            self._drop([table], error)
            raise
        self._log.warning("record_not_carried", range=str(one.range), error=str(reason))

    def _drop(self, tables: Sequence[TableBatch], error: BaseException) -> None:
        for table in tables:
            try:
                table.drop(error)
            except (PenstockError, OSError) as failed:  # orphans are found later
                self._log.warning("batch_not_dropped", folder=table.folder, error=str(failed))
            if isinstance(error, SchemaChangedError) or not isinstance(error, Exception):
                # The table, or the rows, are others now. Or native code panicked: what it holds
                # of the table cannot be trusted any more.
                self._tables.forget(table.table.name)

    def _halved(self, by_table: RangesByTable, writer: Writer, way: Way) -> BatchResult:
        """Carry each half of a table's ranges by itself, down to the partition that fails."""
        halves = [
            (name, half)
            for name, planned in by_table.items()
            for half in (planned[: len(planned) // 2], planned[len(planned) // 2 :])
            if half
        ]
        return sum((self._run({name: half}, writer, way) for name, half in halves), BatchResult())
