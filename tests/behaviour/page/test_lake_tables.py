"""The health of tables, read from a real lake."""

import asyncio
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from penstock.page.process.lake_tables import LakeTables, read_tables
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


def test_a_lake_that_is_not_here(tmp_path: Path) -> None:
    """Why there are no tables is part of the answer."""
    assert "no lake" in (read_tables(LakeSettings(root=str(tmp_path / "none"))).unreachable or "")
