"""What `penstock plan` shows, from the status that the controller has written."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.controller.story import TWO_CONSUMERS
from kit.controller.written_status import written
from kit.program import invoked
from penstock.errors import NotFeasibleError, PenstockError


def as_data(*arguments: str) -> Any:
    return json.loads(invoked(*arguments, "-o", "json").stdout)


@pytest.mark.parametrize(
    ("speeds", "exit_code", "moves"),
    [
        ("speeds orders-0=40 orders-1=40 orders-2=40", 0, 0),
        ("speeds orders-0=80 orders-1=80 orders-2=10", 7, 1),
    ],
)
def test_plan_has_an_exit_code_for_pending_changes(
    tmp_path: Path, speeds: str, exit_code: int, moves: int
) -> None:
    """The exit code is 0 without changes and 7 with changes, which are listed."""
    where = written(tmp_path, *TWO_CONSUMERS, speeds)
    done = invoked("plan", *where, "-o", "json")
    assert done.exit_code == exit_code
    data = json.loads(done.stdout)
    assert len(data["moves"]) >= moves
    assert bool(data["moves"]) == bool(moves)


@pytest.mark.parametrize("output", ["table", "json"])
def test_where_no_controller_runs_the_plan_is_by_what_was_known_last(
    tmp_path: Path, output: str
) -> None:
    """It says of when that is, and exits with 1: the group may have changed since."""
    speeds = "speeds orders-0=80 orders-1=80 orders-2=10"
    where = written(tmp_path, *TWO_CONSUMERS, speeds, age_s=200, has_ended=True)
    done = invoked("plan", *where, "-o", output)
    assert done.exit_code == 1
    assert (
        "The controller was stopped in order 3 min ago. This is the plan by what was known 3 min "
        "ago; the group may have changed since."
    ) in " ".join(done.stderr.split())
    fresh = invoked("plan", *written(tmp_path, *TWO_CONSUMERS, speeds), "-o", output)
    assert (fresh.exit_code, fresh.stdout) == (7, done.stdout)


def test_an_old_plan_that_is_not_feasible_says_so(tmp_path: Path) -> None:
    """With the exit code of what cannot be told: by now it may be feasible."""
    speeds = "speeds orders-0=90 orders-1=90 orders-2=90"
    where = written(tmp_path, "settings consumers_max=2", *TWO_CONSUMERS, speeds, age_s=200)
    done = invoked("plan", *where)
    assert done.exit_code == 1
    assert "1 consumer would be over capacity." in done.stderr


def test_a_plan_that_is_not_feasible_is_an_error(tmp_path: Path) -> None:
    """Three partitions that need a consumer each do not fit two consumers."""
    speeds = "speeds orders-0=90 orders-1=90 orders-2=90"
    where = written(tmp_path, "settings consumers_max=2", *TWO_CONSUMERS, speeds)
    error = invoked("plan", *where).exception
    assert isinstance(error, NotFeasibleError)
    assert error.exit_code == 6


def test_plan_asks_what_the_controller_would_ask(tmp_path: Path) -> None:
    """A learned capacity and a backlog count as in the controller's own plans."""
    lines = (
        "settings capacity=auto catch_up=10s calibrated.orders=100",
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1 orders-1@1.2, capacity_log_bytes_per_s=70.0",
        "consumer 2 reports orders-2@1.3, behind_log_bytes=100",
    )
    where = written(tmp_path, *lines)
    asked = as_data("status", *where)["question"]
    assert asked["load_bytes_per_s"]["orders-2"] == pytest.approx(50.0)
    assert asked["capacity_bytes_per_s"] <= 70.0
    done = invoked("plan", *where, "-o", "json")
    assert done.exit_code == 7
    assert {move["from"] for move in json.loads(done.stdout)["moves"]} == {1}


def test_a_packer_that_fails_is_an_error_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the packer and what it said."""

    def fails(_: object) -> None:
        raise ZeroDivisionError("division by zero")

    class Broken:
        pack = staticmethod(fails)

    monkeypatch.setattr("penstock.controller.core.dry_run.algorithm_named", lambda _: Broken)
    error = invoked("plan", *written(tmp_path, *TWO_CONSUMERS)).exception
    assert isinstance(error, PenstockError)
    assert error.message.startswith("The packer CHAIN")
    assert "ZeroDivisionError: division by zero" in error.message
