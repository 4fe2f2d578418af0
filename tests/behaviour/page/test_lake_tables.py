"""The health of tables, read from a real lake."""

import asyncio
import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kit.program import invoked
from penstock.page.process.lake_tables import LakeTables, read_tables
from penstock.pipeline.upkeep import UpkeepReport, keep_up
from penstock.settings.sections import LakeSettings


def test_tables_of_this_group_are_read(tmp_path: Path) -> None:
    """Files, sizes, records and the way through the log; a foreign table is left out."""
    lake = LakeSettings(root=str(tmp_path))
    for name in ("orders", "foreign"):
        for _ in range(3):
            write_deltalake(str(tmp_path / name), pa.table({"a": [1, 2]}), mode="append")
    (tmp_path / "orders" / "data" / lake.group).mkdir(parents=True)
    answer = asyncio.run(LakeTables(lake).newest()).answer()
    assert [one["table"] for one in answer["tables"]] == ["orders"]
    found = answer["tables"][0]
    assert (found["files"], found["records"], found["version"]) == (3, 6, 2)
    assert found["entries_since_checkpoint"] == 3
    assert found["bytes"] > 0


def test_the_log_the_work_of_compaction_and_orphans_are_read(tmp_path: Path) -> None:
    """From a table that was compacted; orphans are counted only when that is asked for."""
    lake = LakeSettings(root=str(tmp_path), group="g")
    assert keep_up_one(lake).files_after == 1
    left = tmp_path / "orders/data/g/compaction/7.compaction.0.new/topic-id/part-7.parquet"
    left.parent.mkdir(parents=True)
    left.touch()
    (health,) = read_tables(lake, counts_orphans=True).tables
    assert health.orphans == 1
    assert health.compaction is not None
    assert (health.compaction.joins, health.compaction.files) == (1, 3)
    assert health.compaction.rewritten_bytes > 0
    log = tmp_path / "orders" / "_delta_log"
    assert health.log.entries == len(list(log.glob("*.json")))
    assert health.log.oldest_checkpoint_version == health.checkpoint_version
    assert (health.log.oldest_checkpoint_unix_ms or 0) > 1_700_000_000_000
    (health,) = read_tables(lake).tables
    assert health.orphans is None


def keep_up_one(lake: LakeSettings) -> UpkeepReport:
    """A table of three files, which are joined by hand."""
    for _ in range(3):
        write_deltalake(f"{lake.root}/orders", pa.table({"a": [1, 2]}), mode="append")
    Path(lake.root, "orders", "data", lake.group).mkdir(parents=True)
    (report,) = keep_up(lake)
    return report


def test_the_command_shows_tables_within_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the same as JSON."""
    lake = LakeSettings(root=str(tmp_path), group="g")
    keep_up_one(lake)
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ["lake", "tables", "--set", f"lake.root={tmp_path}", "--set", "lake.group=g"]
    shown = invoked(*arguments).stdout
    assert all(len(line) <= 80 for line in shown.splitlines())
    words = " ".join(shown.split())
    assert "table files size mean log entries since checkpoint orphans" in words
    assert "orders: 3 files joined in 1 join" in words
    assert "its newest checkpoint at" in words
    (found,) = json.loads(invoked(*arguments, "-o", "json").stdout)
    assert (found["table"], found["files"], found["orphans"]) == ("orders", 1, 0)
    assert found["compaction"]["files_replaced"] == 3


def test_the_command_says_what_was_never_compacted(tmp_path: Path) -> None:
    """A table that is new."""
    write_deltalake(f"{tmp_path}/orders", pa.table({"a": [1, 2]}))
    (tmp_path / "orders/data/g").mkdir(parents=True)
    shown = invoked(
        "lake", "tables", "--set", f"lake.root={tmp_path}", "--set", "lake.group=g"
    ).stdout
    assert "orders: never compacted" in shown


def test_a_lake_that_is_not_here(tmp_path: Path) -> None:
    """Why there are no tables is part of the answer."""
    assert "no lake" in (read_tables(LakeSettings(root=str(tmp_path / "none"))).unreachable or "")
