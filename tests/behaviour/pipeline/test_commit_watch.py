"""Who watches commits is told of each, and of every other writer that was quicker."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import CommitFailedError

from kit.lake.commit_ways import WAYS, commit_by, disturb_commits
from penstock.model import TopicPartition
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)


class Watch:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def committed(self, table: str, version: int, log_entries: int) -> None:
        self.told.append((table, version, log_entries))

    def conflicted(self, table: str) -> None:
        self.told.append((table, "conflict"))


def commit(table: LakeTable, partition: int) -> None:
    """A batch that only moves an offset."""
    place = TopicPartition("orders", partition)
    table.commit([LedgerMove(place, f"g/id/{partition}", None, 1)], [], batch=f"b{partition}")


@pytest.mark.parametrize("way", WAYS)
def test_a_commit_and_a_conflict_are_told(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer takes the version between the look and the commit: one conflict, then ours.

    deltalake settles most such meetings by itself; one that it cannot settle is an error of its.
    """
    commit_by(monkeypatch, way)
    watch, lake = Watch(), LakeSettings(root=str(tmp_path), group="g")
    table, other = LakeTable(lake, "orders", watch=watch), LakeTable(lake, "orders")
    table.open_for(SCHEMA, ())
    commit(table, 0)
    assert watch.told == [("orders", 1, 2)]
    is_quicker = [True]

    def disturbed(put: Callable[[], Any]) -> Any:
        if is_quicker and is_quicker.pop():
            commit(other, 1)
            if way == "deltalake":
                raise CommitFailedError("another writer was quicker")
        return put()

    disturb_commits(monkeypatch, disturbed)
    commit(table, 2)
    assert watch.told[1:] == [("orders", "conflict"), ("orders", 3, 4)]
