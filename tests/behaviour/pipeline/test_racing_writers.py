"""Many writers commit to one table at once; no batch is lost and none is there twice."""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from kit.lake.log_histories import checkpoint, clean_up
from kit.lake.racing_writer import PARTITIONS, carry, carry_many, open_table
from penstock.pipeline import LakeRefusedError, table_log
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.log_commit import WaitingEntry
from penstock.pipeline.make_checkpoint import remove_temporary_files

TESTS = Path(__file__).parents[2]


def _check(root: Path) -> int:
    """Rows are the offsets below the ledger, each once; how many commits moved the ledger.

    The ledger is followed through the log: every move begins where the one before it ended.
    """
    rows = DeltaTable(root / "orders").to_pyarrow_table()
    found: dict[int, list[int]] = {one: [] for one in range(PARTITIONS)}
    for partition, offset in zip(
        rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True
    ):
        found[partition].append(offset)
    ledger = {f"g/id/{one}": 0 for one in range(PARTITIONS)}
    commits = 0
    for file in sorted((root / "orders" / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        moves = [one["txn"] for one in actions if "txn" in one]
        for moved in moves:
            added = sum(json.loads(one["add"]["stats"])["numRecords"] for one in actions[1:2])
            assert moved["version"] == ledger[moved["appId"]] + added, file.name
            ledger[moved["appId"]] = moved["version"]
        commits += bool(moves)
    for partition, offsets in found.items():
        assert sorted(offsets) == list(range(ledger[f"g/id/{partition}"]))
    return commits


def test_threads_that_race_lose_nothing(tmp_path: Path) -> None:
    """Four writers on three partitions: every batch is committed once or refused."""
    open_table(str(tmp_path))
    barrier = threading.Barrier(4)

    def write(writer: int) -> int:
        table = open_table(str(tmp_path))
        barrier.wait()
        return carry_many(table, writer, 40)

    with ThreadPoolExecutor(4) as pool:
        committed = sum(pool.map(write, range(1, 5)))
    assert _check(tmp_path) == committed
    assert committed > 40, "most writers get their turn"


def _writer(
    root: Path, number: int, batches: int, moment: str = "never"
) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "kit.lake.racing_writer", root, str(number), str(batches), moment],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_processes_that_race_lose_nothing(tmp_path: Path) -> None:
    """Also beside another tool that adds rows of its own and makes checkpoints meanwhile."""
    open_table(str(tmp_path))
    children = [_writer(tmp_path, number, 60) for number in (1, 2, 3)]
    foreign = 0
    while any(child.poll() is None for child in children):
        nothing = pa.table(
            {"partition": pa.array([], pa.int64()), "offset": pa.array([], pa.int64())}
        )
        # Writers that do nothing but commit may be quicker more often than its usual 15 times.
        patient = CommitProperties(max_commit_retries=1000)
        write_deltalake(tmp_path / "orders", nothing, mode="append", commit_properties=patient)
        foreign += 1
        if foreign % 5 == 0:
            checkpoint(tmp_path / "orders")
    answers = [int(child.communicate()[0]) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert _check(tmp_path) == sum(answers)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_writer_that_is_killed_in_its_commit_leaves_a_whole_table(
    tmp_path: Path, moment: str
) -> None:
    """The commit is there or not, others go on, and what it left behind is removed."""
    table = open_table(str(tmp_path))
    child = _writer(tmp_path, 1, 60, moment)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert _check(tmp_path) == (6 if moment == "after" else 5)
    log = tmp_path / "orders" / "_delta_log"
    assert len(list(log.glob("_commit_*.json.tmp"))) == 1
    assert carry_many(table, 2, 10) == 10
    assert _check(tmp_path) == (16 if moment == "after" else 15)
    now_s = max(file.stat().st_mtime for file in log.iterdir())
    remove_temporary_files(log, 3600, now_s)
    assert len(list(log.glob("_commit_*.json.tmp"))) == 1, "it may be of a commit under way"
    remove_temporary_files(log, 3600, now_s + 3700)
    assert list(log.glob("_commit_*.json.tmp")) == []


def _while_putting(monkeypatch: pytest.MonkeyPatch, act: Any, *, after: bool = False) -> None:
    """Let something happen right before, or right after, the next entry is put."""
    put, once = WaitingEntry.put_at, iter([True])

    def slow(self: WaitingEntry, version: int) -> Any:
        is_first = next(once, False)
        if is_first and not after:
            act()
        done = put(self, version)
        if is_first and after:
            act()
        return done

    monkeypatch.setattr(WaitingEntry, "put_at", slow)


def _others_go_on(root: Path, partition: int) -> None:
    """Another writer commits, and the log is cleaned up: the version we want is free again."""
    other = open_table(str(root))
    for number in range(3):
        assert carry(other, partition, 2, f"900000{number}")
    checkpoint(root / "orders")
    DeltaTable(root / "orders").alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 0 seconds"}
    )
    clean_up(root / "orders")
    assert carry(other, partition, 1, "9000009")


def _rows(root: Path) -> list[tuple[int, int]]:
    rows = DeltaTable(root / "orders").to_pyarrow_table()
    return sorted(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))


@pytest.mark.parametrize("partition", [0, 1], ids=["our partition", "another partition"])
def test_a_writer_that_slept_while_the_log_was_cleaned_up_puts_nothing_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: int
) -> None:
    """Its version is free again, but no reader looks there. Every record is in the table once."""
    table = open_table(str(tmp_path))
    assert carry(table, 0, 5, "1")
    _while_putting(monkeypatch, lambda: _others_go_on(tmp_path, partition))
    # If others have carried these records, and more, that is as good as our own commit.
    assert carry(table, 0, 5, "2")
    ours, theirs = (10, 7) if partition == 1 else (12, 0)
    assert _rows(tmp_path) == [(0, at) for at in range(ours)] + [(1, at) for at in range(theirs)]
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": ours}
    assert carry(table, 0, 1, "3")
    assert DeltaTable(tmp_path / "orders").transaction_version("g/id/0") == ours + 1


def test_a_writer_that_slept_after_its_commit_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry was cleaned up, too; a checkpoint has it, and its files must stay."""
    table = open_table(str(tmp_path))
    assert carry(table, 0, 5, "1")
    _while_putting(monkeypatch, lambda: _others_go_on(tmp_path, 1), after=True)
    assert carry(table, 0, 5, "2")
    assert _rows(tmp_path) == [(0, at) for at in range(10)] + [(1, at) for at in range(7)]


def test_a_table_that_is_replaced_during_a_commit_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No entry is left in the new table, which has no version before it."""
    table = open_table(str(tmp_path))
    for number in range(4):
        assert carry(table, 0, 5, f"{number}")

    def replace() -> None:
        (tmp_path / "orders").rename(tmp_path / "aside")
        open_table(str(tmp_path))
        # The entry was written beside the old log; a link needs it where it was.
        for left in (tmp_path / "aside" / "_delta_log").glob("_commit_*"):
            left.rename(tmp_path / "orders" / "_delta_log" / left.name)

    _while_putting(monkeypatch, replace)
    assert not carry(table, 0, 5, "9")
    assert DeltaTable(tmp_path / "orders").version() == 0
    assert _rows(tmp_path) == []


def test_a_new_time_of_the_entry_before_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody touches the newest entry during our commit: it is still the same log."""
    table = open_table(str(tmp_path))
    assert carry(table, 0, 5, "1")
    newest = max((tmp_path / "orders" / "_delta_log").glob("*.json"))
    _while_putting(monkeypatch, lambda: os.utime(newest, (1, 1)))
    assert carry(table, 0, 5, "2")
    assert _check(tmp_path) == 2
    assert DeltaTable(tmp_path / "orders").version() == 2


def test_a_lost_answer_is_settled_by_the_ledger_when_the_entry_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit was made, the answer was lost, and its entry was cleaned up meanwhile."""
    table = open_table(str(tmp_path))
    assert carry(table, 0, 5, "1")

    def lost() -> None:
        _others_go_on(tmp_path, 1)
        raise OSError("no answer")

    _while_putting(monkeypatch, lost, after=True)
    assert carry(table, 0, 5, "2")
    assert _rows(tmp_path) == [(0, at) for at in range(10)] + [(1, at) for at in range(7)]


def test_a_version_is_never_put_twice(tmp_path: Path) -> None:
    """A link does not replace a file: the second writer is told that the version is taken."""
    table = open_table(str(tmp_path))
    for content, taken in ((b"first", False), (b"second", True)):
        with WaitingEntry(table.storage) as waiting:
            waiting.write(content)
            assert (waiting.put_at(1) is None) == taken
    log = tmp_path / "orders" / "_delta_log"
    assert (log / f"{1:020d}.json").read_bytes() == b"first"
    assert len(list(log.iterdir())) == 2


def test_races_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that is always taken, although nobody has it, ends in an error."""
    table = open_table(str(tmp_path))
    monkeypatch.setattr(WaitingEntry, "put_at", lambda *_: None)
    with pytest.raises(LakeRefusedError, match="quicker"):
        carry(table, 0, 5, "1")


BUGS = ("a lost race is not checked again", "an entry replaces another", "a free version is right")


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    """Each bug loses or doubles records, and the tests above fail."""
    if bug == "a lost race is not checked again":
        checked = iter([True])
        right = LakeTable._require_current

        def once(self: LakeTable, state: Any, moves: Any) -> None:
            if next(checked, False):
                right(self, state, moves)

        monkeypatch.setattr(LakeTable, "_require_current", once)
        with pytest.raises(AssertionError):
            test_threads_that_race_lose_nothing(tmp_path)
    elif bug == "an entry replaces another":

        def replaced(self: WaitingEntry, version: int) -> Any:
            path = self._storage.local_path(f"_delta_log/{version:020d}.json")
            self._file.replace(path)
            self._content = None
            return self._storage.mark_of(f"_delta_log/{version:020d}.json")

        monkeypatch.setattr(WaitingEntry, "put_at", replaced)
        with pytest.raises((AssertionError, LakeRefusedError)):
            test_threads_that_race_lose_nothing(tmp_path)
    else:
        monkeypatch.setattr(table_log.TableLog, "is_newest", lambda *_: True)
        monkeypatch.setattr(table_log.TableLog, "checkpoint_version", lambda *_: None)
        with pytest.raises(AssertionError):
            test_a_writer_that_slept_while_the_log_was_cleaned_up_puts_nothing_aside(
                tmp_path, monkeypatch, 1
            )
