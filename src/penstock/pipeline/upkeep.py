"""Keeps a lake in shape: joins small files, removes orphans and what compaction replaced.

    for report in keep_up(settings.lake): ...

May run beside any number of writers, and beside itself. Files that no version names any more stay
for `lake.removed_file_retention`, for readers of old versions; files that no version names yet are
not touched at all (that is the sweeper's question, see orphans.py).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.pipeline.batch import Writer
from penstock.pipeline.compaction import Compacted, compact
from penstock.pipeline.lake_commit import LakeTable, StaleLedgerError
from penstock.pipeline.orphans import remove_orphans
from penstock.pipeline.storage import table_names
from penstock.settings.sections import LakeSettings

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    table: str
    files_before: int
    files_after: int
    bytes_rewritten: int
    orphans_removed: int
    files_vacuumed: int
    another_compaction: bool = False


def keep_up(lake: LakeSettings, tables: Sequence[str] = ()) -> Iterator[UpkeepReport]:
    """Look after the named tables, or all."""
    for name in tables or table_names(lake):
        table = LakeTable(lake, name)
        if not table.exists():
            continue
        before = len(table.active())
        done, beaten = Compacted(before, before), False
        try:
            done = compact(table, lake.group, lake.file_size)
        except StaleLedgerError:
            beaten = True  # somebody else compacts this table now; its work is as good as ours
        orphans = remove_orphans(table, lake.group)
        vacuumed = table.vacuum(math.ceil(lake.removed_file_retention / _SECONDS_PER_HOUR))
        yield UpkeepReport(
            name,
            done.files_before,
            len(table.active()),
            done.bytes_rewritten,
            orphans,
            vacuumed,
            beaten,
        )


def sweep_earlier_incarnations(
    lake: LakeSettings, writer: Writer, tables: Sequence[str] = ()
) -> int:
    """At a consumer's start, with its lock held: remove what its earlier lives left behind."""
    return sum(
        remove_orphans(LakeTable(lake, name), lake.group, now_starting=writer)
        for name in tables or table_names(lake)
    )
