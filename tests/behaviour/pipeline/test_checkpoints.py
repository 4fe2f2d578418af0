"""Checkpoints and clean-up by a child process, on real Delta tables."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from deltalake import DeltaTable

from kit.lake.racing_writer import carry, open_table
from penstock.pipeline import checkpoints
from penstock.pipeline.checkpoints import CheckpointMaker
from penstock.pipeline.lake_commit import LakeTable
from penstock.settings.sections import LakeSettings

PATIENCE_S = 60.0


def _lake(root: Path, **options: Any) -> LakeSettings:
    return LakeSettings(root=str(root), group="g", **{"checkpoint_commits": 5, **options})


@pytest.fixture
def maker(tmp_path: Path) -> Iterator[CheckpointMaker]:
    maker = CheckpointMaker(_lake(tmp_path))
    yield maker
    maker.close()


def _wait(is_so: Callable[[], object]) -> None:
    """For what a child process does; there is nothing else to wait for."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _hint(root: Path) -> int:
    file = root / "orders" / "_delta_log" / "_last_checkpoint"
    return int(json.loads(file.read_text())["version"]) if file.exists() else -1


def _table(root: Path, maker: CheckpointMaker) -> LakeTable:
    open_table(str(root))
    return LakeTable(_lake(root), "orders", on_commit=maker.committed)


def test_commits_lead_to_a_checkpoint(tmp_path: Path, maker: CheckpointMaker) -> None:
    """After every so many commits there is one, and what it says is what the entries said."""
    table = _table(tmp_path, maker)
    for number in range(5):
        assert carry(table, 0, 2, f"{number}")
    _wait(lambda: _hint(tmp_path) == 5)
    for entry in (tmp_path / "orders" / "_delta_log").glob("*.json"):
        if entry.name < f"{5:020d}.json":
            entry.unlink()
    fresh = LakeTable(_lake(tmp_path), "orders")
    assert fresh.next_offsets(["g/id/0"]) == {"g/id/0": 10}
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 10


@pytest.mark.parametrize("cleans_up", [True, False])
def test_entries_whose_time_is_over_are_removed(tmp_path: Path, *, cleans_up: bool) -> None:
    """Unless the table says that its log is not cleaned up."""
    table = open_table(str(tmp_path))
    DeltaTable(tmp_path / "orders").alter.set_table_properties(
        {
            "delta.logRetentionDuration": "interval 60 seconds",
            "delta.enableExpiredLogCleanup": str(cleans_up).lower(),
        }
    )
    log = tmp_path / "orders" / "_delta_log"
    for number in range(4):
        assert carry(table, 0, 2, f"{number}")
    DeltaTable(tmp_path / "orders").create_checkpoint()
    for old in log.iterdir():
        os.utime(old, (time.time() - 90, time.time() - 90))
    for number in range(4, 7):
        assert carry(table, 0, 2, f"{number}")
    maker = CheckpointMaker(_lake(tmp_path))
    assert maker._run_child(table.storage) is None
    assert _hint(tmp_path) == 8
    left = [int(one.stem) for one in sorted(log.glob("*.json"))]
    # Version 5 has the checkpoint by which the versions after it can still be read.
    assert left == ([5, 6, 7, 8] if cleans_up else list(range(9)))
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 14
    assert len(DeltaTable(tmp_path / "orders", version=6).to_pyarrow_table()) == 10


def test_a_commit_does_not_wait_for_a_checkpoint(
    tmp_path: Path, maker: CheckpointMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a child runs, commits go on; only one runs, and the newest version is made next."""
    running, most, go_on = [0], [0], threading.Event()
    made: list[str] = []

    def slow(self: CheckpointMaker, storage: Any) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        assert go_on.wait(PATIENCE_S)
        made.append(storage.uri)
        running[0] -= 1

    monkeypatch.setattr(CheckpointMaker, "_run_child", slow)
    monkeypatch.setattr(checkpoints, "PAUSE_FACTOR", 0)
    table = _table(tmp_path, maker)
    for number in range(20):
        assert carry(table, 0, 2, f"{number}")
    assert running == [1]
    go_on.set()
    _wait(lambda: len(made) == 2)
    assert most == [1]


def test_a_checkpoint_that_another_consumer_made_is_not_made_again(
    tmp_path: Path, maker: CheckpointMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that make the same one do no harm, but it is work for nothing."""
    table = _table(tmp_path, maker)
    for number in range(4):
        assert carry(table, 0, 2, f"{number}")
    children: list[Any] = []
    monkeypatch.setattr(CheckpointMaker, "_run_child", lambda _, storage: children.append(storage))
    DeltaTable(tmp_path / "orders").create_checkpoint()
    maker._make("orders", 4)
    assert not children
    maker._make("orders", 5)
    assert len(children) == 1


def test_two_that_make_the_same_checkpoint_do_no_harm(tmp_path: Path) -> None:
    """Both write the same file, each as a whole."""
    table = open_table(str(tmp_path))
    for number in range(5):
        assert carry(table, 0, 2, f"{number}")
    makers = [CheckpointMaker(_lake(tmp_path)) for _ in range(2)]
    failures: list[str | None] = []
    threads = [
        threading.Thread(target=lambda one=one: failures.append(one._run_child(table.storage)))
        for one in makers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert failures == [None, None]
    assert _hint(tmp_path) == 5
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 10
    assert LakeTable(_lake(tmp_path), "orders").next_offsets(["g/id/0"]) == {"g/id/0": 10}


def test_a_failure_is_logged_once_and_tried_again(tmp_path: Path) -> None:
    """The log of a table is damaged, and then it is mended."""
    table = open_table(str(tmp_path))
    for number in range(5):
        assert carry(table, 0, 2, f"{number}")
    entry = tmp_path / "orders" / "_delta_log" / f"{2:020d}.json"
    kept = entry.read_bytes()
    entry.write_bytes(b"nonsense")
    with structlog.testing.capture_logs() as logged:
        maker = CheckpointMaker(_lake(tmp_path))
        maker._make("orders", 5)
        maker._make("orders", 5)
        entry.write_bytes(kept)
        maker._make("orders", 5)
    assert [one["event"] for one in logged] == ["checkpoint_failed", "checkpoints_made_again"]
    assert logged[0]["table"] == "orders"
    assert "clone3" not in logged[0]["error"], "no stack of native code"
    assert _hint(tmp_path) == 5


def test_the_end_of_a_consumer_ends_its_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that does not come to an end does not hold up the consumer's."""
    sleeps = tmp_path / "sleeps.py"
    sleeps.write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    monkeypatch.setattr(checkpoints, "PROGRAM", sleeps)
    maker = CheckpointMaker(_lake(tmp_path))
    maker.committed("orders", 5)
    _wait(lambda: maker._child is not None)
    child = maker._child
    maker.close()
    assert child is not None
    assert child.poll() is not None
    maker.committed("orders", 10)
    assert not maker._due


def test_a_checkpoint_takes_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one that took long there is a pause, and the next is due only then."""
    pauses: list[float] = []
    right = threading.Condition.wait_for

    def noted(self: Any, is_so: Any, timeout: float | None = None) -> Any:
        if timeout is not None:
            pauses.append(timeout)
            timeout = 0
        return right(self, is_so, timeout)

    monkeypatch.setattr(threading.Condition, "wait_for", noted)
    monkeypatch.setattr(CheckpointMaker, "_run_child", lambda *_: time.sleep(0.05))
    maker = CheckpointMaker(_lake(tmp_path))
    maker.committed("orders", 5)
    _wait(lambda: pauses)
    maker.close()
    assert pauses[0] >= 9 * 0.05
