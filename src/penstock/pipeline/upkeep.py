"""Maintains the lake's tables: joins small files, removes orphans and files that were replaced.

    for report in keep_up(settings.lake): ...

Safe beside any number of writers, foreign tools and itself. It touches only tables that this group
writes, and follows the table's own properties: replaced files stay for
`delta.deletedFileRetentionDuration`, log entries for `delta.logRetentionDuration`, and
`delta.targetFileSize` wins over `lake.file_size`. Files that no commit names are removed only when
the ledger proves that none ever will (see orphans.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from penstock.pipeline.compaction import Compacted, compact
from penstock.pipeline.failures import LakeRefusedError
from penstock.pipeline.lake_commit import LakeTable, StaleLedgerError
from penstock.pipeline.orphans import remove_orphans
from penstock.pipeline.storage import TableStorage, table_names
from penstock.settings.sections import LakeSettings

# Writer features under which a file may be replaced by another one with the same rows.
_COMPACTABLE = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "generatedColumns",
        "identityColumns",
        "invariants",
        "timestampNtz",
    }
)


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    table: str
    files_before: int
    files_after: int
    bytes_rewritten: int
    orphans_removed: int
    files_vacuumed: int
    joins_refused: int = 0
    # Why the table was not compacted; empty when it was.
    left_alone: str = ""


def keep_up(lake: LakeSettings, tables: Sequence[str] = ()) -> Iterator[UpkeepReport]:
    """Maintain the named tables, or all that this group writes.

    A named table that this group does not write is refused. One that fails does not hold up the
    others: its error is raised when they are done.
    """
    for name in tables:
        if LakeTable(lake, name).exists() and not is_written_by(lake, name):
            raise LakeRefusedError(
                f"Group {lake.group} does not write the table {name}, so it does not maintain it.",
                remedy="Use the tool that writes it, or name the right group in lake.group.",
            )
    failed: LakeRefusedError | None = None
    for name in tables or tables_of(lake):
        table = LakeTable(lake, name)
        try:
            report = _keep_up_one(lake, table) if table.exists() else None
        except (DeltaError, OSError, LakeRefusedError) as error:
            refused = LakeRefusedError(
                f"The table {name} could not be maintained: {error}",
                remedy="Check that the lake has free space and may be written.",
            )
            refused.__cause__ = error
            failed = failed or refused
            continue
        if report is not None:
            yield report
    if failed is not None:
        raise failed


def tables_of(lake: LakeSettings) -> list[str]:
    """The tables below the root that this group has written to."""
    return [name for name in table_names(lake) if is_written_by(lake, name)]


def is_written_by(lake: LakeSettings, name: str) -> bool:
    """Whether files of this group are in the table: each group writes to a folder of its own."""
    return TableStorage(lake, name).has_folder(f"data/{lake.group}")


def _keep_up_one(lake: LakeSettings, table: LakeTable) -> UpkeepReport:
    before = len(table.active())
    foreign = sorted(table.writer_features() - _COMPACTABLE)
    if foreign:
        reason = f"the table uses {', '.join(foreign)}"
        orphans = remove_orphans(table, lake.group)
        return UpkeepReport(table.name, before, before, 0, orphans, 0, left_alone=reason)
    done, reason = Compacted(before, before), ""
    try:
        file_size = table.target_file_size() or lake.file_size
        done = compact(table, lake, file_size)
    except StaleLedgerError:
        reason = "another process of this group compacts it now"
    # Last, because a checkpoint may have dropped the log's memory of a file that was replaced.
    vacuumed, orphans = table.vacuum(), remove_orphans(table, lake.group)
    return UpkeepReport(
        table.name,
        done.files_before,
        len(table.active()),
        done.bytes_rewritten,
        orphans,
        vacuumed,
        done.joins_refused,
        reason,
    )


def remove_orphans_of(lake: LakeSettings, consumer_id: int) -> int:
    """Remove what earlier incarnations of this consumer left behind and can no longer commit.

    A lock on the state directory does not prove that an earlier incarnation is dead: on a volume
    that two nodes see it may still write. So only the ledger decides, as for all other orphans.
    """
    removed = 0
    failed: Exception | None = None
    for name in tables_of(lake):
        try:
            removed += remove_orphans(LakeTable(lake, name), lake.group, of_consumer=consumer_id)
        except (DeltaError, OSError, LakeRefusedError) as error:
            failed = failed or error
    if failed is not None:
        raise LakeRefusedError(f"Not every table could be searched: {failed}") from failed
    return removed
