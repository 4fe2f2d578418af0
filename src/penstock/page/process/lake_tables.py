"""Looks at the lake's tables, where the lake can be read from here.

Slow and large (deltalake): it is imported and read only when somebody asks, at most every 30 s.
"""

import asyncio
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.extras import missing_extra
from penstock.page.core.tables import CompactionDone, LogLength, TableHealth, TablesRead
from penstock.settings.sections import LakeSettings

if TYPE_CHECKING:
    from penstock.pipeline.table_reading import TableReading

READ_EVERY_S = 30.0
TABLES_MAX = 200


class LakeTables:
    """One look at a time; whoever asks meanwhile waits for its answer."""

    def __init__(self, lake: LakeSettings) -> None:
        self._lake = lake
        self._lock = asyncio.Lock()
        self._read: TablesRead | None = None
        self._read_s = 0.0

    async def newest(self) -> TablesRead:
        async with self._lock:
            is_old = time.monotonic() - self._read_s > READ_EVERY_S
            if self._read is None or is_old:
                self._read = await asyncio.to_thread(read_tables, self._lake)
                self._read_s = time.monotonic()
            return self._read


def read_tables(lake: LakeSettings, *, counts_orphans: bool = False) -> TablesRead:
    """What is in the lake now. Never raises: why nothing was found is part of the answer.

    Orphans are found by listing every file on the disk, which takes long for a large table.
    """
    now_unix_ms = round(time.time() * 1000)
    try:
        if "://" not in lake.root and not Path(lake.root).expanduser().is_dir():
            return TablesRead(now_unix_ms, unreachable="There is no lake at lake.root here (yet).")
        return TablesRead(now_unix_ms, tuple(_healths(lake, counts_orphans=counts_orphans)))
    except ImportError as error:
        missing = missing_extra(error, "page")
        why = str(error) if missing is None else f"{missing.message} {missing.remedy}"
        return TablesRead(now_unix_ms, unreachable=why)
    except PenstockError as error:
        return TablesRead(now_unix_ms, unreachable=error.message)
    except Exception as error:  # noqa: BLE001 -- stores and deltalake raise what they like
        first_line = next(iter(str(error).splitlines()), "")
        return TablesRead(now_unix_ms, unreachable=f"{type(error).__name__}: {first_line}")


def _healths(lake: LakeSettings, *, counts_orphans: bool) -> list[TableHealth]:
    from penstock.pipeline.storage import table_names  # noqa: PLC0415 -- slow: deltalake
    from penstock.pipeline.table_reading import TableReading  # noqa: PLC0415 -- the same
    from penstock.pipeline.upkeep import is_written_by  # noqa: PLC0415 -- the same

    found = []
    for name in table_names(lake)[:TABLES_MAX]:
        if is_written_by(lake, name):
            table = TableReading(lake, name)
            if table.exists():
                found.append(_health(lake, table, counts_orphans=counts_orphans))
    return found


def _health(lake: LakeSettings, table: "TableReading", *, counts_orphans: bool) -> TableHealth:
    from penstock.pipeline.compaction import totals_of  # noqa: PLC0415 -- slow: deltalake
    from penstock.pipeline.orphans import find_orphans  # noqa: PLC0415 -- the same

    files, (version, checkpoint_version) = table.active(), table.versions()
    records = [one.records for one in files]
    known = [one for one in records if one is not None]
    totals = totals_of(table, lake.group)
    return TableHealth(
        table=table.name,
        version=version,
        file_sizes=tuple(one.size_bytes for one in files),
        records=sum(known) if len(known) == len(records) else None,
        newest_file_unix_ms=max((one.modified_at_ms for one in files), default=None),
        checkpoint_version=checkpoint_version,
        file_size_target_bytes=table.target_file_size() or lake.file_size_of(table.name),
        log=_log_length(table),
        compaction=CompactionDone(**asdict(totals)) if totals.joins else None,
        orphans=len(find_orphans(table, lake.group).orphans) if counts_orphans else None,
    )


def _log_length(table: "TableReading") -> LogLength:
    names = table.storage.file_names("_delta_log")
    entries = sum(name.endswith(".json") and name[:-5].isdecimal() for name in names)
    checkpoints = [name for name in names if ".checkpoint." in name and name[:20].isdecimal()]
    if not checkpoints:
        return LogLength(entries)
    oldest = min(checkpoints)
    mark = table.storage.mark_of(f"_delta_log/{oldest}")
    at_unix_ms = None if mark is None else mark.modified_at_ns // 1_000_000
    return LogLength(entries, int(oldest[:20]), at_unix_ms)
