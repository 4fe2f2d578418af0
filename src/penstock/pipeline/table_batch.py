"""One table's part of a batch, step by step: read, transform, write, check, commit."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Observation, functions

from penstock.model import TopicPartition
from penstock.pipeline.batch import BatchResult, PlannedRange, Timings
from penstock.pipeline.dead_letters import (
    PendingDeadLetters,
    already_kept,
    dead_letter_folder,
    dead_letter_moves,
    ledger_of_dead_letters,
    put_up_fence,
    with_topic_ids,
    without,
)
from penstock.pipeline.diagnosis import topics_made_again
from penstock.pipeline.failures import (
    LakeRefusedError,
    StaleWriterError,
    TransformationFailedError,
)
from penstock.pipeline.lake_commit import RANGES_KEY, LakeTable, LedgerMove
from penstock.pipeline.record_source import RecordSource
from penstock.pipeline.transformation import transform
from penstock.pipeline.write_batch import WriteOptions, WrittenFile, write_rows, written_files
from penstock.settings import Settings
from penstock.settings.sections import TableSettings


@dataclass(frozen=True, slots=True)
class TableWork:
    """What a table's batches share."""

    settings: Settings
    session: Any
    kafka: RecordSource
    table: LakeTable
    dead_letters: LakeTable
    at_point: Callable[[str], None]


@dataclass(slots=True)
class _Tally:
    """What the passes of this batch counted."""

    records: int = 0
    rows: int = 0
    decoded_bytes: int = 0
    dead_letters: int = 0
    read_s: float = 0.0
    transform_s: float = 0.0
    write_s: float = 0.0
    pending: list[PendingDeadLetters] = field(default_factory=list)


class TableBatch:
    """Ranges of the topics that share one table, written below one folder."""

    def __init__(self, work: TableWork, planned: Sequence[PlannedRange], folder: str) -> None:
        self._work = work
        self.planned = sorted(planned)
        self.folder = folder
        self._group = work.settings.lake.group
        self._tally = _Tally()
        self._is_committing = False

    def run(self) -> BatchResult:
        """Carry the ranges or raise; in both cases nothing of it is half visible."""
        work = self._work
        self.begin()
        for number, (settings, planned) in enumerate(self._parts()):
            self._pass(settings, planned, number)
        files = written_files(work.table.storage, self.folder)
        require_all(work.table.storage.uri, files, self._tally.rows)
        work.at_point("files-written")
        # What was read came from these topics if they are still the ones that were planned for.
        for wrong in topics_made_again(work.kafka, self.planned).values():
            raise wrong
        return self.commit(files)

    def begin(self) -> None:
        """Most writers that lost their partitions are told here, before any work."""
        self._work.table.require_current(self._moves())
        self._work.at_point("planned")

    def commit(self, files: list[WrittenFile]) -> BatchResult:
        """Everything is written and checked: make it count."""
        work = self._work
        began = time.monotonic()
        for pending in self._tally.pending:
            work.dead_letters.commit(pending.moves, pending.files, batch=pending.folder)
            work.at_point("dead-letters-committed")
        work.at_point("before-commit")
        self._is_committing = True
        work.table.commit(
            self._moves(), files, batch=self.folder, notes={RANGES_KEY: self._ranges()}
        )
        work.at_point("committed")
        return self._result(files, commit_s=time.monotonic() - began)

    def drop(self, error: Exception) -> None:
        """The batch will not commit: its files go, unless nobody knows what became of it.

        A commit that went unanswered may still arrive. Then its files must be there; if it never
        does, the sweeper finds them once the ledger has moved.
        """
        if self._is_committing and not isinstance(error, StaleWriterError):
            return
        self._work.table.storage.delete_folder(self.folder)
        for pending in self._tally.pending:
            self._work.dead_letters.drop_uncommitted(pending.folder)

    def _moves(self) -> list[LedgerMove]:
        return [
            LedgerMove(
                one.partition,
                one.application_id(self._group),
                one.ledger_offset,
                one.range.end,
                one.claim,
            )
            for one in self.planned
        ]

    def _ranges(self) -> dict[str, list[int]]:
        """For whoever reads the log: what this commit carried of which partition."""
        return {
            one.application_id(self._group): [one.range.start, one.range.end]
            for one in self.planned
        }

    def _parts(self) -> list[tuple[TableSettings, list[PlannedRange]]]:
        """Topics that share the table and go through the same function are read together."""
        lake = self._work.settings.lake
        parts: list[tuple[TableSettings, list[PlannedRange]]] = []
        for one in self.planned:
            settings = lake.table_of(one.partition.topic)
            for known, planned in parts:
                if known == settings:
                    planned.append(one)
                    break
            else:
                parts.append((settings, [one]))
        return parts

    def _pass(self, table: TableSettings, planned: list[PlannedRange], number: int) -> None:
        """Once through Spark; a second time only if records were marked undecodable."""
        work, tally = self._work, self._tally
        began = time.monotonic()
        ledger: dict[TopicPartition, int | None] = {}
        kept: list[tuple[str, int, int]] = []
        if table.transformation:
            put_up_fence(work.dead_letters, self._group, planned, self.folder)
            ledger = ledger_of_dead_letters(work.dead_letters, self._group, planned)
            kept = already_kept(work.dead_letters, planned, ledger)
        counted = Observation()
        raw = self._raw(planned, kept).observe(counted, *counts())
        read = time.monotonic()
        transformed = transform(raw, table)
        work.table.open_for(transformed.rows.schema.json(), table.partition_by)
        prepared = time.monotonic()
        options = self._write_options(table.partition_by)
        landed = Observation()
        rows = transformed.rows.observe(landed, functions.count(functions.lit(1)).alias("rows"))
        write_rows(rows, work.table.storage, self._part(planned, number), options)
        tally.rows += int(landed.get["rows"])
        seen = counted.get
        tally.records += int(seen["records"]) + len(kept)
        tally.decoded_bytes += int(seen["bytes"] or 0)
        marked = 0
        if transformed.undecodable is not None:
            marked = int(transformed.undecodable.get["undecodable"])
        if marked:
            self._write_dead_letters(table, planned, ledger, kept, marked)
        tally.dead_letters += marked
        tally.read_s += read - began
        tally.transform_s += prepared - read
        tally.write_s += time.monotonic() - prepared

    def _part(self, planned: Sequence[PlannedRange], number: int) -> str:
        """Files of one topic alone say so in their path: a topic made again is told from it."""
        ids = sorted({one.topic_id for one in planned})
        return f"{self.folder}/" + (f"topic-{ids[0]}" if len(ids) == 1 else f"mixed-{number}")

    def _write_dead_letters(
        self,
        table: TableSettings,
        planned: list[PlannedRange],
        ledger: dict[TopicPartition, int | None],
        kept: list[tuple[str, int, int]],
        marked: int,
    ) -> None:
        work = self._work
        letters = transform(self._raw(planned, kept), table).dead_letters
        letters = with_topic_ids(letters, planned)
        work.dead_letters.open_for(letters.schema.json(), ())
        witness = planned[0]
        folder = dead_letter_folder(self.folder, witness, ledger[witness.partition])
        pending = PendingDeadLetters(folder, dead_letter_moves(self._group, planned, ledger), [])
        self._tally.pending.append(pending)
        write_rows(letters, work.dead_letters.storage, folder, self._write_options(()))
        pending.files.extend(written_files(work.dead_letters.storage, folder))
        found = sum(file.records for file in pending.files)
        if found != marked:
            raise TransformationFailedError(
                f"The transformation {table.transformation} marked {marked} records undecodable, "
                f"and {found} when asked again.",
                remedy="A transformation must give the same rows for the same records.",
            )
        work.at_point("dead-letters-written")

    def _raw(self, planned: Sequence[PlannedRange], kept: list[tuple[str, int, int]]) -> Any:
        work = self._work
        return without(work.session, work.kafka.read(planned), kept)

    def _write_options(self, partition_by: Sequence[str]) -> WriteOptions:
        settings = self._work.settings
        return WriteOptions(
            tasks=settings.spark.tasks,
            compression=settings.lake.compression,
            partition_by=tuple(partition_by),
        )

    def _result(self, files: list[WrittenFile], *, commit_s: float) -> BatchResult:
        tally = self._tally
        return BatchResult(
            carried={one.partition: one.range.end for one in self.planned},
            records=tally.records,
            decoded_bytes=tally.decoded_bytes,
            dead_letters=tally.dead_letters,
            files=len(files),
            file_bytes=sum(file.size_bytes for file in files),
            timings=Timings(tally.read_s, tally.transform_s, tally.write_s, commit_s),
        )


def require_all(place: str, files: Sequence[WrittenFile], written: int) -> None:
    """Offsets are committed only with every row that Spark says it wrote.

    Spark and this process look at the lake by different ways: should they ever see different
    places, the batch fails instead of leaving a hole.
    """
    found = sum(file.records for file in files)
    if found != written:
        raise LakeRefusedError(
            f"Spark wrote {written} rows to {place}, but {found} are there.",
            remedy="Spark and the consumer must see the same lake.root.",
        )


def counts() -> list[Any]:
    """What the records of a pass add up to; counted while they flow."""
    sizes = [
        functions.coalesce(functions.octet_length(name), functions.lit(0))
        for name in ("key", "value")
    ]
    return [
        functions.count(functions.lit(1)).alias("records"),
        functions.sum((sizes[0] + sizes[1]).cast("long")).alias("bytes"),
    ]
