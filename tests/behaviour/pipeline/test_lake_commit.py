"""The ledger's compare-and-set on real Delta tables, without Spark."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable
from deltalake.table import TableAlterer

from kit.lake.commit_ways import WAYS, commit_by, disturb_commits
from penstock.model import Epoch, TopicPartition
from penstock.pipeline import Claim, LakeRefusedError, SchemaChangedError, StaleWriterError
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.table_state import TableState
from penstock.pipeline.written_files import WrittenFile, written_files
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)
_numbers = itertools.count(1)


@pytest.fixture(autouse=True, params=WAYS)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each promise holds for both ways of committing."""
    commit_by(monkeypatch, request.param)


def _lake(root: Path, **options: Any) -> LakeSettings:
    return LakeSettings(root=str(root), **options)


def _table(root: Path, **options: Any) -> LakeTable:
    table = LakeTable(_lake(root, **options), "orders")
    table.open_for(SCHEMA, ())
    return table


def _files(table: LakeTable, start: int, end: int) -> list[WrittenFile]:
    folder = f"data/g/1-1/{next(_numbers)}.id.0.{start}"
    path = Path(table.storage.uri) / folder / "topic-id" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    pa.parquet.write_table(pa.table({"offset": list(range(start, end))}), path)
    return written_files(table.storage, folder)


def _move(expected: int | None, end: int, partition: int = 0) -> LedgerMove:
    return LedgerMove(TopicPartition("orders", partition), f"g/id/{partition}", expected, end)


def _offsets(root: Path) -> list[int]:
    rows = DeltaTable(root / "orders").to_pyarrow_table()
    return sorted(rows["offset"].to_pylist())


def test_files_and_offsets_appear_together(tmp_path: Path) -> None:
    """After a commit the rows are visible and the ledger says the next offset."""
    table = _table(tmp_path)
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": None}
    table.commit([_move(None, 3)], _files(table, 0, 3), batch="b1")
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 3}
    assert _offsets(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("expected", [None, 2, 4])
def test_a_move_from_elsewhere_is_refused(tmp_path: Path, expected: int | None) -> None:
    """A batch planned from anything but the ledger's offset changes nothing."""
    table = _table(tmp_path)
    table.commit([_move(None, 3)], _files(table, 0, 3), batch="b1")
    with pytest.raises(StaleWriterError, match="orders-0 at 3"):
        table.commit([_move(expected, 9)], _files(table, 4, 9), batch="b2")
    assert _offsets(tmp_path) == [0, 1, 2]


def _beaten_after_the_check(
    monkeypatch: pytest.MonkeyPatch, table: LakeTable, other: LakeTable, move: LedgerMove
) -> None:
    """Between the check and the commit of `table`, `other` commits once."""
    check, commits = LakeTable._require_current, iter([True])

    def checked(self: LakeTable, opened: TableState, moves: list[LedgerMove]) -> None:
        check(self, opened, moves)
        if self is table and next(commits, False):
            other.commit([move], _files(other, 0, move.next_offset), batch="quicker")

    monkeypatch.setattr(LakeTable, "_require_current", checked)


@pytest.mark.parametrize("end", [2, 3, 5], ids=["shorter", "equal", "longer"])
def test_a_commit_between_check_and_commit_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    """Delta refuses a commit when one in between touched the same entry."""
    table, other = _table(tmp_path), _table(tmp_path)
    _beaten_after_the_check(monkeypatch, table, other, _move(None, 3))
    with pytest.raises(StaleWriterError):
        table.commit([_move(None, end)], _files(table, 0, end), batch="slower")
    assert _offsets(tmp_path) == [0, 1, 2]


def test_commits_of_other_partitions_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit in between that touches other entries does not disturb."""
    table, other = _table(tmp_path), _table(tmp_path)
    _beaten_after_the_check(monkeypatch, table, other, _move(None, 3, partition=1))
    table.commit([_move(None, 2)], _files(table, 0, 2), batch="b1")
    assert table.next_offsets(["g/id/0", "g/id/1"]) == {"g/id/0": 2, "g/id/1": 3}
    assert _offsets(tmp_path) == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("happened", [True, False])
def test_an_unknown_outcome_is_settled_by_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happened: bool
) -> None:
    """An error after success is no second write; an error before it is tried again."""
    table = _table(tmp_path)
    failures = iter([True])

    def fails_once(put: Callable[[], Any]) -> Any:
        fails = next(failures, False)
        done = put() if happened or not fails else None
        if fails:
            raise OSError("the answer was lost")
        return done

    disturb_commits(monkeypatch, fails_once)
    table.commit([_move(None, 3)], _files(table, 0, 3), batch="b1")
    assert _offsets(tmp_path) == [0, 1, 2]
    assert DeltaTable(tmp_path / "orders").version() == 1


def test_a_lake_that_never_answers_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tries are bounded, and what is raised says where."""
    table = _table(tmp_path)

    def fails(_: Callable[[], Any]) -> None:
        raise OSError("gone")

    disturb_commits(monkeypatch, fails)
    with pytest.raises(LakeRefusedError, match="orders: gone"):
        table.commit([_move(None, 3)], _files(table, 0, 3), batch="b1")
    assert _offsets(tmp_path) == []


def test_the_ledger_survives_checkpoints_and_a_short_log(tmp_path: Path) -> None:
    """Entries last written long ago are still there after checkpoints and clean-up."""
    table = _table(tmp_path, checkpoint_commits=5, log_retention="60s")
    table.commit([_move(None, 7, partition=9)], _files(table, 0, 7), batch="old")
    for number in range(30):
        moves = [_move(number or None, number + 1)]
        table.commit(moves, _files(table, number, number + 1), batch=f"b{number}")
    table.vacuum()
    fresh = LakeTable(_lake(tmp_path), "orders")
    assert fresh.next_offsets(["g/id/9", "g/id/0"]) == {"g/id/0": 30, "g/id/9": 7}


def _with_column(name: str, kind: str = "string") -> str:
    added = {"name": name, "type": kind, "nullable": True, "metadata": {}}
    return SCHEMA.replace("]}", f",{json.dumps(added)}]}}")


def test_columns_are_added_and_never_changed(tmp_path: Path) -> None:
    """A new column joins the table; another type for a known one is refused."""
    table = _table(tmp_path)
    table.open_for(_with_column("extra"), ())
    assert [one.name for one in DeltaTable(tmp_path / "orders").schema().fields] == [
        "offset",
        "extra",
    ]
    with pytest.raises(SchemaChangedError, match="offset"):
        table.open_for(SCHEMA.replace("long", "string"), ())
    with pytest.raises(SchemaChangedError, match="partitioned by"):
        table.open_for(SCHEMA, ("offset",))


@pytest.mark.parametrize("theirs", ["extra", "other"])
def test_of_two_writers_that_add_a_column_both_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    """The loser looks again: the same column is there already, another one does not disturb."""
    first, second = _table(tmp_path), _table(tmp_path)
    add, rivals = TableAlterer.add_columns, iter([second])

    def beaten(self: TableAlterer, *arguments: Any, **named: Any) -> None:
        for rival in rivals:
            rival.open_for(_with_column(theirs), ())
        add(self, *arguments, **named)

    monkeypatch.setattr(TableAlterer, "add_columns", beaten)
    first.open_for(_with_column("extra"), ())
    names = [one.name for one in DeltaTable(tmp_path / "orders").schema().fields]
    assert sorted(names) == sorted({"offset", "extra", theirs})
    first.commit([_move(None, 3)], _files(first, 0, 3), batch="b1")


def test_a_column_that_another_writer_added_with_another_type_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loser looks again and finds that its rows do not fit."""
    first, second = _table(tmp_path), _table(tmp_path)
    add, rivals = TableAlterer.add_columns, iter([second])

    def beaten(self: TableAlterer, *arguments: Any, **named: Any) -> None:
        for rival in rivals:
            rival.open_for(_with_column("extra", "long"), ())
        add(self, *arguments, **named)

    monkeypatch.setattr(TableAlterer, "add_columns", beaten)
    with pytest.raises(SchemaChangedError, match="extra"):
        first.open_for(_with_column("extra"), ())


def test_a_vanished_table_is_not_made_anew(tmp_path: Path) -> None:
    """A ledger that was there and is gone stops the writer: starting afresh would repeat all."""
    table = LakeTable(_lake(tmp_path), "orders")
    with pytest.raises(LakeRefusedError, match="vanished"):
        table.require_current([_move(5, 9)])


def _claimed(expected: int | None, end: int, number: int, authority: str = "c1") -> LedgerMove:
    place = TopicPartition("orders", 0)
    return LedgerMove(place, "g/id/0", expected, end, Claim(authority, Epoch(7, number)))


def test_the_ledger_names_the_epoch_of_its_last_commit(tmp_path: Path) -> None:
    """Whoever reads it learns under which claim the partition was carried last."""
    table = _table(tmp_path)
    assert table.last_epochs(["g/id/0"], "c1") == {}
    table.commit([_claimed(None, 3, number=4)], _files(table, 0, 3), batch="b1")
    table.commit([_claimed(3, 5, number=4)], _files(table, 3, 5), batch="b2")
    other = LakeTable(_lake(tmp_path), "orders")
    assert other.last_epochs(["g/id/0"], "c1") == {"g/id/0": Epoch(7, 4)}
    other.commit([_claimed(5, 6, number=9)], _files(other, 5, 6), batch="b3")
    assert table.last_epochs(["g/id/0"], "c1") == {"g/id/0": Epoch(7, 9)}


def test_an_older_claim_cannot_commit_even_at_the_right_offset(tmp_path: Path) -> None:
    """A zombie that learned the newest offset is refused for its epoch."""
    table = _table(tmp_path)
    table.commit([_claimed(None, 3, number=9)], _files(table, 0, 3), batch="b1")
    zombie = LakeTable(_lake(tmp_path), "orders")
    with pytest.raises(StaleWriterError):
        zombie.commit([_claimed(3, 5, number=4)], _files(zombie, 3, 5), batch="b2")
    assert _offsets(tmp_path) == [0, 1, 2]
    assert table.last_epochs(["g/id/0"], "c1") == {"g/id/0": Epoch(7, 9)}


def test_epochs_of_a_lost_controller_topic_bind_nobody(tmp_path: Path) -> None:
    """When the controller's topic is made again its epochs start again, and carrying goes on."""
    table = _table(tmp_path)
    table.commit([_claimed(None, 3, number=9)], _files(table, 0, 3), batch="b1")
    later = LakeTable(_lake(tmp_path), "orders")
    assert later.last_epochs(["g/id/0"], "c2") == {}
    later.commit([_claimed(3, 5, number=1, authority="c2")], _files(later, 3, 5), batch="b2")
    assert _offsets(tmp_path) == [0, 1, 2, 3, 4]


def _led(expected: int | None, end: int, leader_epoch: int | None) -> LedgerMove:
    place = TopicPartition("orders", 0)
    return LedgerMove(place, "g/id/0", expected, end, leader_epoch=leader_epoch)


def test_the_ledger_names_the_leader_epoch_at_its_offset(tmp_path: Path) -> None:
    """Every writer reads the newest one; an offset without one does not keep an older epoch."""
    table, other = _table(tmp_path), LakeTable(_lake(tmp_path), "orders")
    assert LakeTable(_lake(tmp_path), "none").leader_epochs(["g/id/0"]) == {}
    assert table.leader_epochs(["g/id/0"]) == {}
    table.commit([_led(None, 3, 0)], _files(table, 0, 3), batch="b1")
    assert other.leader_epochs(["g/id/0", "g/id/1"]) == {"g/id/0": 0}
    other.commit([_led(3, 5, 7)], _files(other, 3, 5), batch="b2")
    assert table.leader_epochs(["g/id/0"]) == {"g/id/0": 7}
    table.commit([_led(5, 6, None)], _files(table, 5, 6), batch="b3")
    assert other.leader_epochs(["g/id/0"]) == {}


def test_a_leader_epoch_is_written_when_it_changes(tmp_path: Path) -> None:
    """Otherwise each commit would have one more entry for each partition."""
    table = _table(tmp_path)
    for start, epoch in ((0, 4), (3, 4), (6, 5)):
        move = _led(start or None, start + 3, epoch)
        table.commit([move], _files(table, start, start + 3), batch=f"b{start}")
    logs = sorted((tmp_path / "orders" / "_delta_log").glob("*.json"))[-3:]
    assert [log.read_text().count('"leader-epoch/g/id/0"') for log in logs] == [1, 0, 1]


def test_an_epoch_is_written_once(tmp_path: Path) -> None:
    """Commits after the first under a claim carry one ledger entry a partition, not three."""
    table = _table(tmp_path)
    for start in (0, 3, 6):
        move = _claimed(start or None, start + 3, number=4)
        table.commit([move], _files(table, start, start + 3), batch=f"b{start}")
    entries = [
        sum('"txn"' in line for line in log.read_text(encoding="utf-8").splitlines())
        for log in sorted((tmp_path / "orders" / "_delta_log").glob("*.json"))[1:]
    ]
    assert entries == [3, 1, 1]
