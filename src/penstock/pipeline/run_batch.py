"""One batch, from planned ranges to commits. Every batch takes the same four steps:

    begin    each table: the ledger still stands where the ranges were planned from
    write    all tables: records from Kafka into Parquet files (a `FileWriter`)
    check    each table: the files hold every row, and the topics are the planned ones
    commit   each table: dead letters first, then files and offsets in one commit

There are two writers: `dataframe_writer` (Spark's connector and the user's transformation, one
table) and `pass_through_writer` (records without a transformation, many tables in one Spark job).
What fails for one table leaves the others alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.pipeline.batch import BatchResult, PlannedRange, Timings
from penstock.pipeline.diagnosis import topics_made_again
from penstock.pipeline.failures import (
    ENDS_THE_PROCESS,
    LakeRefusedError,
    StaleWriterError,
)
from penstock.pipeline.joint_table import HandOver, JointTable
from penstock.pipeline.lake_commit import RANGES_KEY, LakeTable, LedgerMove, StaleLedgerError
from penstock.pipeline.record_source import RecordSource
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings

COMMITS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class PendingDeadLetters:
    """Dead letters of a batch: written, and to be committed before the batch's table."""

    table: LakeTable
    folder: str
    moves: Sequence[LedgerMove]
    files: list[WrittenFile]


@dataclass(slots=True)
class TableBatch:
    """One table's part of a batch: ranges of the topics that share the table, and one folder."""

    lake: LakeSettings
    table: LakeTable
    planned: Sequence[PlannedRange]
    folder: str
    dead_letters: list[PendingDeadLetters] = field(default_factory=list)
    # How many of them are in their table, or may be.
    letters_tried: int = 0
    is_committing: bool = False
    # To who commits for all writers of the table; None where everyone commits for itself.
    hand_over: HandOver | None = None

    @property
    def moves(self) -> list[LedgerMove]:
        return [
            LedgerMove(
                one.partition,
                one.application_id(self.lake.group),
                one.ledger_offset,
                one.range.end,
                one.claim,
                one.leader_epoch,
            )
            for one in self.planned
        ]

    def folder_for(self, planned: Sequence[PlannedRange], number: int = 0) -> str:
        """Files of a single topic have its id in their path, so that a topic made again shows."""
        ids = sorted({one.topic_id for one in planned})
        return f"{self.folder}/" + (f"topic-{ids[0]}" if len(ids) == 1 else f"mixed-{number}")

    def commit(self, files: Sequence[WrittenFile], at_point: Callable[[str], None]) -> None:
        """Dead letters first: a crash in between must not lose them."""
        for letters in self.dead_letters:
            self.letters_tried += 1
            try:
                letters.table.commit(letters.moves, letters.files, batch=letters.folder)
            except StaleLedgerError:
                self.letters_tried -= 1
                raise
            at_point("dead-letters-committed")
        at_point("before-commit")
        self.is_committing = True
        ranges = {
            one.application_id(self.lake.group): (one.range.start, one.range.end)
            for one in self.planned
        }
        if self.hand_over is not None and isinstance(self.table, JointTable):
            self.table.commit_with_others(
                self.moves, files, batch=self.folder, ranges=ranges, hand_over=self.hand_over
            )
        else:
            notes = {RANGES_KEY: {name: list(one) for name, one in ranges.items()}}
            self.table.commit(self.moves, files, batch=self.folder, notes=notes)
        at_point("committed")

    def drop(self, error: BaseException) -> None:
        """Delete the batch's files, unless it is unknown whether it committed.

        A commit without an answer may still arrive, and then its files must be there. If it never
        does, they are removed as orphans once the ledger has moved.
        """
        if self.is_committing and not isinstance(error, StaleWriterError):
            return
        self.table.storage.delete_folder(self.folder)
        for letters in self.dead_letters[self.letters_tried :]:
            letters.table.storage.delete_folder(letters.folder)


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer wrote for one table. `rows` is what it counted; the files must hold as many.

    `failure` says why this table alone was not written.
    """

    files: Sequence[WrittenFile] = ()
    rows: int = 0
    records: int = 0
    decoded_bytes: int = 0
    dead_letters: int = 0
    failure: PenstockError | None = None


class FileWriter(Protocol):
    """One way from Kafka into files. Made for one batch."""

    def prepare(self, table: TableBatch) -> Timings:
        """Open the table for the columns to come, or raise for this table alone."""

    def write(self, tables: Sequence[TableBatch]) -> Sequence[Written]:
        """Write all prepared tables, in their order, or raise for all of them."""


# Called with the tables that a failure concerns; what became of their ranges instead.
OnFailure = Callable[[Sequence[TableBatch], BaseException], BatchResult]


@dataclass(frozen=True, slots=True)
class BatchRun:
    """The four steps, for any writer."""

    writer: FileWriter
    kafka: RecordSource
    at_point: Callable[[str], None]
    on_failure: OnFailure

    def run(self, tables: Sequence[TableBatch]) -> BatchResult:
        """Carry the ranges; nothing of a failed table is visible to a reader."""
        begun, result = self._begin(tables)
        if not begun:
            return result
        began = time.monotonic()
        try:
            written = self.writer.write(begun)
            self.at_point("files-written")
            wrong = topics_made_again(self.kafka, [one for each in begun for one in each.planned])
        except ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001 -- see ENDS_THE_PROCESS
            return result + self.on_failure(begun, error)
        result += BatchResult(timings=Timings(write_s=time.monotonic() - began))

        def check_and_commit(table: TableBatch, its: Written) -> BatchResult:
            try:
                _require_written(its)
                _require_planned_topics(table, wrong)
                return self._commit(table, its)
            except ENDS_THE_PROCESS:
                raise
            except BaseException as error:  # noqa: BLE001 -- see ENDS_THE_PROCESS
                return self.on_failure([table], error)

        began = time.monotonic()
        if len(begun) == 1:
            results = [check_and_commit(begun[0], written[0])]
        else:
            with ThreadPoolExecutor(COMMITS_AT_ONCE, thread_name_prefix="penstock-commit") as pool:
                results = list(pool.map(check_and_commit, begun, written))
        result = sum(results, start=result)
        commit_s = result.timings.commit_s + time.monotonic() - began
        return replace(result, timings=replace(result.timings, commit_s=commit_s))

    def _begin(self, tables: Sequence[TableBatch]) -> tuple[list[TableBatch], BatchResult]:
        """Most writers that lost their partitions learn it here, before any work."""
        begun, result = [], BatchResult()
        for table in tables:
            try:
                table.table.require_current(table.moves)
                self.at_point("planned")
                result += BatchResult(timings=self.writer.prepare(table))
                begun.append(table)
            except ENDS_THE_PROCESS:
                raise
            except BaseException as error:  # noqa: BLE001 -- see ENDS_THE_PROCESS
                result += self.on_failure([table], error)
        return begun, result

    def _commit(self, table: TableBatch, written: Written) -> BatchResult:
        require_all_rows(table.table.storage.uri, written)
        table.commit(written.files, self.at_point)
        return BatchResult(
            carried={one.partition: one.range.end for one in table.planned},
            records=written.records,
            decoded_bytes=written.decoded_bytes,
            dead_letters=written.dead_letters,
            files=len(written.files),
            file_bytes=sum(file.size_bytes for file in written.files),
            commit_round_s=table.table.commit_round_s,
        )


def _require_written(written: Written) -> None:
    if written.failure is not None:
        raise written.failure


def _require_planned_topics(
    table: TableBatch, wrong: Mapping[TopicPartition, PenstockError]
) -> None:
    """What was read came from the planned topics if they are still there after the reading."""
    for one in table.planned:
        if one.partition in wrong:
            raise wrong[one.partition]


def require_all_rows(place: str, written: Written) -> None:
    """Offsets are committed only with every row that was written.

    Spark and this process reach the lake in different ways. If they ever see different places,
    the batch fails instead of leaving a gap.
    """
    found = sum(file.records for file in written.files)
    if found != written.rows:
        raise LakeRefusedError(
            f"Spark wrote {written.rows} rows to {place}, but {found} are there.",
            remedy="Spark and the consumer must see the same lake.root.",
        )
