"""What an earlier incarnation left behind is removed by a child process, on real Delta tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.consumer.process.external_systems import ExternalSystems
from penstock.model import TopicPartition
from penstock.pipeline import LakeRefusedError, Writer
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.orphans import find_orphans, remove_orphans
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_reading import TableReading
from penstock.pipeline.table_with_files import TableWithFiles
from penstock.settings import Settings, changed_settings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    changes = {"lake.root": str(tmp_path), "lake.group": "g"}
    return changed_settings(Settings(), {**changes, "kafka.bootstrap_servers": "127.0.0.1:1"})


@pytest.fixture
def systems(settings: Settings) -> Iterator[ExternalSystems]:
    made = ExternalSystems(settings, Writer(1, 2), lambda _: None)
    yield made
    made.end_upkeep()


def _table(settings: Settings, name: str = "orders") -> LakeTable:
    """Its ledger has moved past every batch of `_left`."""
    table = LakeTable(settings.lake, name)
    table.open_for(SCHEMA, ())
    table.commit([LedgerMove(TopicPartition(name, 0), "g/id/0", None, 5)], [], batch="b")
    return table


def _left(table: LakeTable, consumer: int) -> Path:
    """A file that an incarnation of a consumer wrote and can no longer commit."""
    folder = Path(table.storage.uri) / f"data/g/{consumer}-1/7.id.0.new/topic-id"
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").touch()
    return folder / "part-0.parquet"


def _no_list_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(_: TableWithFiles) -> Any:
        raise AssertionError("this process opens a table with the list of its files")

    monkeypatch.setattr(TableWithFiles, "newest", opened)
    monkeypatch.setattr(TableReading, "_replayed", opened)


def test_a_consumer_removes_orphans_without_a_list_of_files_of_its_own(
    settings: Settings, systems: ExternalSystems, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of a large table is larger than the memory of a consumer: a child reads it."""
    own, other = (_left(_table(settings, name), 1) for name in ("orders", "payments"))
    foreign = _left(LakeTable(settings.lake, "orders"), 11)
    _no_list_of_files(monkeypatch)
    assert systems.remove_orphans() == 2
    assert not own.exists()
    assert not other.exists()
    assert foreign.exists(), "another consumer's files are not its business"
    assert systems.remove_orphans() == 0


def test_a_table_that_cannot_be_searched_is_named_and_others_are_searched(
    settings: Settings, systems: ExternalSystems
) -> None:
    """The core tells it, and asks again later."""
    bad, good = (_left(_table(settings, name), 1) for name in ("bad", "good"))
    newest = max((Path(settings.lake.root) / "bad/_delta_log").glob("*.json"))
    newest.write_text("nonsense", encoding="utf-8")
    with pytest.raises(LakeRefusedError, match="The table bad could not be searched") as told:
        systems.remove_orphans()
    assert told.value.remedy
    assert bad.exists()
    assert not good.exists()


def test_only_the_folders_of_the_consumer_are_listed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one, no list of files is read: most files of a table are of other consumers."""
    table = _table(settings)
    for consumer in (2, 11):
        _left(table, consumer)
    listed: list[str] = []
    right = TableStorage.each_file_below

    def noted(self: TableStorage, path: str) -> Any:
        listed.append(path)
        return right(self, path)

    monkeypatch.setattr(TableStorage, "each_file_below", noted)
    with monkeypatch.context() as patched:
        _no_list_of_files(patched)
        assert remove_orphans(table, "g", of_consumer=1) == 0
        assert listed == []
        with pytest.raises(AssertionError, match="list of its files"):
            remove_orphans(table, "g", of_consumer=2)
    assert len(find_orphans(table, "g", of_consumer=2).orphans) == 1
    assert listed == ["data/g/2-1"]
