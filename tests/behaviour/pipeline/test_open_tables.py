"""A consumer of many tables keeps a bounded number of them open, those that were used last."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from penstock.model import TopicPartition
from penstock.pipeline import Pipeline
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.open_tables import OpenTables
from penstock.pipeline.storage import TableStorage
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)


def _noting(opened: list[str]) -> Callable[[str], str]:
    """Opens nothing, and notes what was to be opened."""

    def open_table(name: str) -> str:
        opened.append(name)
        return name

    return open_table


def test_the_one_that_was_used_least_recently_is_let_go() -> None:
    """Not the one that was opened first, if it was used since."""
    opened: list[str] = []
    tables = OpenTables(_noting(opened), most=2)
    for name in ("a", "b", "a", "c", "a", "b"):
        assert tables.get(name) == name
    assert opened == ["a", "b", "c", "b"]
    assert tables.names == ("a", "b")


def test_a_table_that_is_forgotten_is_opened_anew() -> None:
    """Also one that nobody has open."""
    opened: list[str] = []
    tables = OpenTables(_noting(opened), most=2)
    tables.get("a")
    tables.forget("a")
    tables.forget("b")
    assert tables.names == ()
    tables.get("a")
    assert opened == ["a", "a"]


def _pipeline(root: Path, open_tables: int) -> Pipeline:
    lake = LakeSettings(root=str(root), group="g", open_tables=open_tables)
    return Pipeline(Settings(lake=lake), None)


def test_the_ledgers_of_many_topics_are_read_with_few_tables_open(tmp_path: Path) -> None:
    """Every partition is answered, and the last tables stay."""
    partitions = [TopicPartition(f"topic-{number:03d}", 0) for number in range(30)]
    pipeline = _pipeline(tmp_path, 4)
    view = pipeline.read_ledger({one: f"id-{one.topic}" for one in partitions}, "authority")
    assert view.next_offsets == dict.fromkeys(partitions)
    assert not view.failures
    assert pipeline._tables.names == tuple(one.topic for one in partitions[-4:])


def test_opening_a_table_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log is read when it is used."""

    def read(self: TableStorage, path: str) -> None:
        raise AssertionError(f"{path} of {self.uri} is read")

    for name in ("read_marked", "mark_of", "file_names", "open_file"):
        monkeypatch.setattr(TableStorage, name, read)
    table = _pipeline(tmp_path, 1).table("orders")
    with pytest.raises(AssertionError, match="is read"):
        table.exists()


def test_a_table_that_was_let_go_in_use_loses_nothing(tmp_path: Path) -> None:
    """A batch that holds it commits; the one that is opened anew goes on from there."""
    pipeline = _pipeline(tmp_path, 1)
    held = pipeline.table("orders")
    held.open_for(SCHEMA, ())
    _commit(held, None, 5)
    assert pipeline.table("others").name == "others"
    anew = pipeline.table("orders")
    assert anew is not held
    _commit(anew, 5, 7)
    _commit(held, 7, 9)
    _commit(anew, 9, 12)
    assert DeltaTable(tmp_path / "orders").transaction_version("g/id/0") == 12
    assert DeltaTable(tmp_path / "orders").version() == 4


def _commit(table: LakeTable, expected: int | None, end: int) -> None:
    move = LedgerMove(TopicPartition("orders", 0), "g/id/0", expected, end)
    table.commit([move], [], batch=f"b{end}")
