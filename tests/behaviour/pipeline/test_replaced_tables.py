"""Another tool replaces a table's columns or partitioning while we write it; no Spark."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from kit.lake.commit_ways import WAYS, commit_by, disturb_commits
from penstock.model import TopicPartition
from penstock.pipeline import SchemaChangedError, table_schema
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

PLACE = TopicPartition("orders", 0)
_numbers = itertools.count(1)


@pytest.fixture(autouse=True, params=WAYS)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each promise holds for both ways of committing."""
    commit_by(monkeypatch, request.param)


def _schema(*columns: tuple[str, str]) -> str:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns
    ]
    return json.dumps({"type": "struct", "fields": fields})


SCHEMA = _schema(("offset", "long"), ("value", "binary"))


def _table(root: Path) -> LakeTable:
    return LakeTable(LakeSettings(root=str(root), group="g"), "orders")


def _commit(table: LakeTable, offset: int) -> None:
    """A batch of one record, written for `SCHEMA`."""
    folder = f"data/g/1-1/{next(_numbers)}.id.0.{offset or 'new'}"
    path = Path(table.storage.uri) / folder / "topic-id" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    pa.parquet.write_table(pa.table({"offset": [offset], "value": [b"\xff"]}), path)
    move = LedgerMove(PLACE, "g/id/0", offset or None, offset + 1)
    table.commit([move], written_files(table.storage, folder), batch=folder)


def _overwritten(rows: dict[str, list[Any]], **options: Any) -> Callable[[Path], None]:
    def overwrite(root: Path) -> None:
        table = root / "orders"
        write_deltalake(table, pa.table(rows), mode="overwrite", schema_mode="overwrite", **options)

    return overwrite


CHANGES = {
    "another type": (_overwritten({"offset": [7], "value": ["text"]}), "value"),
    "a column less": (_overwritten({"offset": [7]}), "value"),
    "another partitioning": (
        _overwritten({"offset": [7], "value": [b"x"]}, partition_by=["offset"]),
        "partitioned by",
    ),
}


@pytest.mark.parametrize("moment", ["before", "between check and commit"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_commit_into_a_table_that_was_replaced_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, moment: str
) -> None:
    """Rows that no longer fit are not added, and the ledger stays."""
    replace, named = CHANGES[change]
    table = _table(tmp_path)
    table.open_for(SCHEMA, ())
    _commit(table, 0)
    table.open_for(SCHEMA, ())
    if moment == "before":
        replace(tmp_path)
    else:
        once = iter([True])

        def beaten(put: Callable[[], Any]) -> Any:
            if next(once, False):
                replace(tmp_path)
            return put()

        disturb_commits(monkeypatch, beaten)
    with pytest.raises(SchemaChangedError, match=named):
        _commit(table, 1)
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 1}
    assert DeltaTable(tmp_path / "orders").to_pyarrow_table()["offset"].to_pylist() == [7]


def test_a_table_is_opened_anew_when_it_has_changed(tmp_path: Path) -> None:
    """The next batch is told that its rows do not fit; a column that is missing is added."""
    table = _table(tmp_path)
    table.open_for(SCHEMA, ())
    _commit(table, 0)
    CHANGES["a column less"][0](tmp_path)
    table.require_current([LedgerMove(PLACE, "g/id/0", 1, 2)])
    table.open_for(SCHEMA, ())
    _commit(table, 1)
    assert sorted(DeltaTable(tmp_path / "orders").to_pyarrow_table()["offset"].to_pylist()) == [
        1,
        7,
    ]
    CHANGES["another type"][0](tmp_path)
    table.require_current([LedgerMove(PLACE, "g/id/0", 2, 3)])
    with pytest.raises(SchemaChangedError, match="value"):
        table.open_for(SCHEMA, ())


def test_rows_of_every_topic_of_a_table_must_fit(tmp_path: Path) -> None:
    """Several topics share a table, each with columns of its own: all of them are looked at."""
    table = _table(tmp_path)
    table.open_for(SCHEMA, ())
    table.open_for(_schema(("offset", "long")), ())
    CHANGES["another type"][0](tmp_path)
    with pytest.raises(SchemaChangedError, match="value"):
        _commit(table, 0)


def test_changes_that_do_no_harm_refuse_nothing(tmp_path: Path) -> None:
    """Another column, a property and other rows are the business of whoever changes them."""
    table = _table(tmp_path)
    table.open_for(SCHEMA, ())
    _commit(table, 0)
    other = DeltaTable(tmp_path / "orders")
    other.alter.add_columns([Field("more", PrimitiveType("string"))])
    other.alter.set_table_properties({"delta.targetFileSize": "77"})
    write_deltalake(
        tmp_path / "orders", pa.table({"offset": [9]}), mode="append", schema_mode="merge"
    )
    _commit(table, 1)
    rows = DeltaTable(tmp_path / "orders").to_pyarrow_table()
    assert sorted(rows["offset"].to_pylist()) == [0, 1, 9]


def test_a_table_is_looked_at_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is cheap while nobody changes the table."""
    table = _table(tmp_path)
    table.open_for(SCHEMA, ())
    _commit(table, 0)
    looks = []
    monkeypatch.setattr(table_schema, "require_servable", lambda *given: looks.append(given))
    for offset in range(1, 4):
        table.open_for(SCHEMA, ())
        _commit(table, offset)
    assert not looks
    DeltaTable(tmp_path / "orders").alter.set_table_properties({"delta.targetFileSize": "77"})
    _commit(table, 4)
    assert len(looks) == 1
