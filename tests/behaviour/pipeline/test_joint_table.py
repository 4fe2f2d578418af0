"""One entry of the log for the batches of several writers, read back by deltalake."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from penstock.model import Epoch, TopicPartition
from penstock.pipeline import LakeRefusedError, StaleWriterError
from penstock.pipeline.batch import Claim
from penstock.pipeline.joint_table import BatchToCommit, Handed, JointTable, table_mark
from penstock.pipeline.lake_commit import RANGES_KEY, LakeTable
from penstock.pipeline.ledger_moves import LedgerMove
from penstock.pipeline.log_commit import WaitingEntry
from penstock.pipeline.log_entries import BATCH_KEY, BATCHES_KEY
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"partition","type":"long","nullable":true,"metadata":{}},'
    '{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)
NAME = "data/g/1-1/together.1"


def _table(root: Path, name: str = "orders") -> JointTable:
    table = JointTable(LakeSettings(root=str(root), group="g"), name)
    table.open_for(SCHEMA, ())
    table.exists()
    return table


def _batch(
    table: JointTable, partition: int, start: int, end: int, claim: Claim | None = None
) -> BatchToCommit:
    name = f"data/g/{partition + 1}-1/{start}.id.{partition}.{end}"
    path = Path(table.storage.uri) / name / "part-0.parquet"
    path.parent.mkdir(parents=True)
    rows = {"partition": [partition] * (end - start), "offset": list(range(start, end))}
    pyarrow.parquet.write_table(pa.table(rows), path)
    entry = f"g/id/{partition}"
    move = LedgerMove(TopicPartition("orders", partition), entry, start or None, end, claim)
    state = table._state()
    assert state is not None
    files = tuple(written_files(table.storage, name))
    return BatchToCommit(name, table_mark(state), (move,), files, {entry: (start, end)})


def _rows(root: Path) -> dict[int, list[int]]:
    """Every file is added by one entry: readers would not show a second one of the same name."""
    entries = sorted((root / "orders" / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for file in entries for line in file.read_text().splitlines()]
    added = [line["add"]["path"] for line in lines if "add" in line]
    assert len(added) == len(set(added))
    found: dict[int, list[int]] = {}
    for row in DeltaTable(root / "orders").to_pyarrow_table().to_pylist():
        found.setdefault(row["partition"], []).append(row["offset"])
    return {partition: sorted(offsets) for partition, offsets in sorted(found.items())}


def _info(root: Path, version: int) -> dict[str, Any]:
    file = root / "orders" / "_delta_log" / f"{version:020d}.json"
    info: dict[str, Any] = json.loads(file.read_text().splitlines()[0])["commitInfo"]
    return info


def _commit(table: JointTable, batch: BatchToCommit, hand_over: "Given") -> int:
    return table.commit_with_others(
        batch.moves, batch.files, batch=batch.name, ranges=batch.ranges, hand_over=hand_over
    )


class Given:
    """What the one that should commit does."""

    def __init__(self, does: Callable[[BatchToCommit], Handed | None]) -> None:
        self._does = does
        self.writers: frozenset[str] = frozenset()
        self.found, self.named = 0, -1

    def hand_over(
        self,
        table: str,
        batch: BatchToCommit,
        writers: frozenset[str],
        key: Callable[[], bytes],
    ) -> Handed | None:
        assert (table, len(key())) == ("orders", 64)
        self.writers = writers
        return self._does(batch)

    def found_committed(self, table: str) -> None:
        assert table == "orders"
        self.found += 1

    def last_version(self, table: str) -> int:
        assert table == "orders"
        return self.named


def test_a_batch_that_another_commits_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the ledger allows is asked again after each lost race."""
    table, other = _table(tmp_path), _table(tmp_path)
    first, second = (_batch(table, number, 0, 3) for number in range(2))
    put_at, races = WaitingEntry.put_at, [first]

    def put_late(self: WaitingEntry, *given: Any, **named: Any) -> Any:
        if races:
            other.commit_together([races.pop()], name=f"{NAME}0")
        return put_at(self, *given, **named)

    monkeypatch.setattr(WaitingEntry, "put_at", put_late)
    assert table.commit_together([first, second], name=NAME).committed == {second.name}
    assert _rows(tmp_path) == {0: [0, 1, 2], 1: [0, 1, 2]}


def test_a_writer_that_falls_behind_reads_on_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one version for each lost race it stayed behind quicker writers, and gave up."""
    table, other = _table(tmp_path), _table(tmp_path)
    batch, quicker = _batch(table, 0, 0, 3), [_batch(other, 1, n, n + 1) for n in range(50)]
    put_at, attempts = WaitingEntry.put_at, [0]

    def put_late(self: WaitingEntry, version: int) -> Any:
        if threading.current_thread().name == "quicker":
            return put_at(self, version)
        attempts[0] += 1
        thread = threading.Thread(target=commit_five, name="quicker")
        thread.start()
        thread.join()
        return put_at(self, version)

    def commit_five() -> None:
        for _ in range(5):
            if quicker:
                one = quicker.pop(0)
                other.commit_together([one], name=f"{NAME}{len(quicker)}")

    monkeypatch.setattr(WaitingEntry, "put_at", put_late)
    table.commit_together([batch], name=NAME)
    # Ten times others made five entries.
    assert attempts[0] <= 20
    assert _rows(tmp_path) == {0: [0, 1, 2], 1: list(range(50))}


def test_one_entry_holds_the_batches_of_three(tmp_path: Path) -> None:
    """It names every one of them, and its ledger and rows are those of all."""
    table = _table(tmp_path)
    batches = [_batch(table, number, 0, 3) for number in range(3)]
    done = table.commit_together(batches, name=NAME)
    assert done.committed == {one.name for one in batches}
    assert _rows(tmp_path) == {0: [0, 1, 2], 1: [0, 1, 2], 2: [0, 1, 2]}
    info = _info(tmp_path, done.version)
    assert (info[BATCH_KEY], info[BATCHES_KEY]) == (NAME, [one.name for one in batches])
    assert info[RANGES_KEY] == {f"g/id/{number}": [0, 3] for number in range(3)}
    assert [DeltaTable(tmp_path / "orders").transaction_version(f"g/id/{n}") for n in range(3)] == [
        3,
        3,
        3,
    ]


def test_a_stale_batch_is_refused_alone(tmp_path: Path) -> None:
    """The others go in. A commit that has none left is not made."""
    table, other = _table(tmp_path), _table(tmp_path)
    old = _batch(table, 0, 0, 2)
    done = other.commit_together([replace(old, name=f"{old.name}x")], name="data/g/2-1/together.1")
    new = _batch(table, 1, 0, 3)
    done = table.commit_together([old, new], name=NAME)
    assert done.committed == {new.name}
    assert _rows(tmp_path) == {0: [0, 1], 1: [0, 1, 2]}
    nothing = table.commit_together([old, new], name="data/g/1-1/together.2")
    assert (nothing.version, nothing.committed) == (done.version, frozenset())
    assert DeltaTable(tmp_path / "orders").version() == done.version


def test_of_two_batches_for_one_entry_the_first_goes_in(tmp_path: Path) -> None:
    """A partition that moved may be offered by its old owner and by its new one."""
    table = _table(tmp_path)
    first = _batch(table, 0, 0, 2)
    second = _batch(table, 0, 0, 3)
    assert table.commit_together([first, second], name=NAME).committed == {first.name}
    assert _rows(tmp_path) == {0: [0, 1]}


def test_a_batch_for_another_table_or_without_a_move_is_refused(tmp_path: Path) -> None:
    """A mark of other columns, one entry twice, and nothing to do."""
    table = _table(tmp_path)
    good = _batch(table, 0, 0, 2)
    wrong = [
        replace(good, name="a", table_mark="0" * 32),
        replace(good, name="b", moves=good.moves * 2),
        replace(good, name="c", moves=()),
    ]
    assert table.commit_together(wrong, name=NAME).committed == frozenset()
    assert table.commit_together([*wrong, good], name=NAME).committed == {good.name}


def test_an_outdated_epoch_is_refused_and_a_new_one_is_kept(tmp_path: Path) -> None:
    """Also by one that has committed under the old epoch for its owner."""
    table = _table(tmp_path)
    old, new = Claim("topic", Epoch(1, 1)), Claim("topic", Epoch(1, 2))
    assert table.commit_together([_batch(table, 0, 0, 2, old)], name=NAME).committed
    again = table.commit_together([_batch(table, 0, 2, 4, old)], name=f"{NAME}2")
    assert again.committed
    entry = (tmp_path / "orders" / "_delta_log" / f"{again.version:020d}.json").read_text()
    assert "epoch/" not in entry, "it is in the ledger already"
    assert table.commit_together([_batch(table, 0, 4, 6, new)], name=f"{NAME}3").committed
    assert not table.commit_together([_batch(table, 0, 6, 8, old)], name=f"{NAME}4").committed
    assert _rows(tmp_path) == {0: list(range(6))}


@pytest.mark.parametrize("is_put", [True, False])
def test_an_unknown_outcome_is_settled_by_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_put: bool
) -> None:
    """The first attempt fails after or before its entry is there; the batches are in once."""
    table = _table(tmp_path)
    batches = [_batch(table, number, 0, 2) for number in range(2)]
    put, fails = WaitingEntry.put_at, iter([True])

    def put_at(self: WaitingEntry, version: int) -> Any:
        if not next(fails, False):
            return put(self, version)
        if is_put:
            put(self, version)
        raise OSError("no answer")

    monkeypatch.setattr(WaitingEntry, "put_at", put_at)
    done = table.commit_together(batches, name=NAME)
    assert done.committed == {one.name for one in batches}
    assert _rows(tmp_path) == {0: [0, 1], 1: [0, 1]}


def test_a_lake_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody is answered."""
    table = _table(tmp_path)
    batch = _batch(table, 0, 0, 2)

    def fail(*_: object) -> Any:
        raise OSError("disk is gone")

    monkeypatch.setattr(WaitingEntry, "put_at", fail)
    with pytest.raises(LakeRefusedError, match="disk is gone"):
        table.commit_together([batch], name=NAME)


def test_a_batch_that_nobody_takes_is_committed_here(tmp_path: Path) -> None:
    """As by `commit`, with the same notes."""
    table = _table(tmp_path)
    batch = _batch(table, 0, 0, 2)
    version = _commit(table, batch, Given(lambda _: None))
    assert _info(tmp_path, version)[BATCH_KEY] == batch.name
    assert _info(tmp_path, version)[RANGES_KEY] == {"g/id/0": [0, 2]}


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_batch_that_another_committed_is_not_committed_again(
    tmp_path: Path, is_answered: bool
) -> None:
    """With its answer or without: the log has it. The writers are told as the log names them."""
    table, committer = _table(tmp_path), _table(tmp_path)

    def commit(batch: BatchToCommit) -> Handed:
        done = committer.commit_together([batch], name=NAME)
        return Handed(done.version if is_answered else None)

    given = Given(commit)
    _commit(table, _batch(table, 4, 0, 2), Given(lambda _: None))
    assert table.commit_round_s > 0
    for end in (2, 4):
        batch = _batch(table, 3, end - 2, end)
        table.require_current(batch.moves)
        version = _commit(table, batch, given)
        assert _info(tmp_path, version)[BATCHES_KEY] == [batch.name]
    assert _rows(tmp_path) == {3: [0, 1, 2, 3], 4: [0, 1]}
    assert given.writers == {"data/g/4-1", "data/g/5-1"}
    assert table.commit_round_s == 0.0, "batches need not wait for a turn of their own"
    assert given.found == (0 if is_answered else 2), "who commits has done so without an answer"


def test_an_answer_alone_is_not_believed(tmp_path: Path) -> None:
    """A forged or mistaken one: the batch is committed here. So is a refused one."""
    table = _table(tmp_path)
    for number, handed in enumerate((Handed(10**9), Handed(1), Handed(None))):
        batch = _batch(table, number, 0, 2)
        assert _info(tmp_path, _commit(table, batch, Given(lambda _, it=handed: it)))  # type: ignore[misc]
    assert _rows(tmp_path) == {0: [0, 1], 1: [0, 1], 2: [0, 1]}


def test_one_that_is_committed_while_its_writer_gives_up_is_in_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late commit comes between the look into the log and the writer's own commit."""
    table, committer = _table(tmp_path), _table(tmp_path)
    batch = _batch(table, 0, 0, 2)
    alone = LakeTable.commit

    def late(self: LakeTable, *given: Any, **named: Any) -> int:
        committer.commit_together([batch], name=NAME)
        return alone(self, *given, **named)

    monkeypatch.setattr(LakeTable, "commit", late)
    given = Given(lambda _: Handed())
    version = _commit(table, batch, given)
    assert _info(tmp_path, version)[BATCHES_KEY] == [batch.name]
    assert _rows(tmp_path) == {0: [0, 1]}
    assert given.found == 1


def test_a_batch_that_lost_its_partition_is_refused(tmp_path: Path) -> None:
    """Another owner has moved the ledger: the writer learns it from its own commit."""
    table, other = _table(tmp_path), _table(tmp_path)
    batch, quicker = _batch(table, 0, 0, 2), _batch(table, 0, 0, 3)
    table.require_current(batch.moves)

    def refuse(_: BatchToCommit) -> Handed:
        other.commit_together([quicker], name=NAME)
        return Handed(None)

    with pytest.raises(StaleWriterError):
        _commit(table, batch, Given(refuse))
    assert _rows(tmp_path) == {0: [0, 1, 2]}


def test_a_late_offer_of_a_batch_that_is_in_changes_nothing(tmp_path: Path) -> None:
    """Its writer gave up and committed; whoever reads the offer then leaves it out."""
    table, committer = _table(tmp_path), _table(tmp_path)
    batch = _batch(table, 0, 0, 2)
    version = _commit(table, batch, Given(lambda _: Handed()))
    assert committer.commit_together([batch], name=NAME).committed == frozenset()
    assert DeltaTable(tmp_path / "orders").version() == version


def test_a_commit_for_many_takes_one_turn(tmp_path: Path) -> None:
    """So batches need not begin further apart: the round is of those who commit."""
    table = _table(tmp_path)
    for step in range(2):
        batches = [_batch(table, number, step * 2, step * 2 + 2) for number in range(12)]
        table.commit_together(batches, name=f"data/g/1-1/together.{step}")
    assert table._log.round.writers == 12
    assert table.commit_round_s < 12 * 0.025


def test_the_key_of_a_table_is_made_once(tmp_path: Path) -> None:
    """Whoever is first makes it, all read the same, and no reader of the table minds it."""
    table, other = _table(tmp_path), _table(tmp_path)
    assert table.commit_key() == other.commit_key() == _table(tmp_path).commit_key()
    folder = tmp_path / "orders" / "_penstock"
    assert [one.name for one in folder.iterdir()] == ["commit-key"]
    table.commit_together([_batch(table, 0, 0, 2)], name=NAME)
    DeltaTable(tmp_path / "orders").vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert (folder / "commit-key").is_file()
    assert _rows(tmp_path) == {0: [0, 1]}


def test_of_two_that_make_the_key_at_once_one_is_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one takes what is there."""
    table, link = _table(tmp_path), os.link

    def late(source: Any, target: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        assert len(_table(tmp_path).commit_key()) == 64
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert table.commit_key() == _table(tmp_path).commit_key()


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    """An empty one would let everybody sign."""
    table = _table(tmp_path)
    (tmp_path / "orders" / "_penstock").mkdir()
    (tmp_path / "orders" / "_penstock" / "commit-key").write_text("")
    with pytest.raises(LakeRefusedError, match="is no key"):
        table.commit_key()


def test_a_new_key_is_found_after_a_batch_without_an_answer(tmp_path: Path) -> None:
    """A table that was made again has another one."""
    table = _table(tmp_path)
    old = table.commit_key()
    (tmp_path / "orders" / "_penstock" / "commit-key").unlink()
    assert table.commit_key() == old
    _commit(table, _batch(table, 0, 0, 2), Given(lambda _: Handed()))
    assert table.commit_key() != old
