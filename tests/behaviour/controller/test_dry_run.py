"""The plan that would be made now."""

import pytest

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.dry_run import dry_run, problem_of_question
from penstock.controller.core.snapshot import snapshot
from penstock.errors import PenstockError


def test_a_plan_from_a_snapshot() -> None:
    """What it moves, from whom to whom, and how many consumers it needs."""
    teller = after(*TWO_CONSUMERS, "3000 ms pass", "speeds orders-0=90 orders-1=80 orders-2=10")
    seen = snapshot(state_of(teller), 1_000, is_degraded=False)
    found = dry_run("CHAIN", problem_of_question(seen["question"])).data()
    assert found["consumers_then"] == 2
    assert {one["partition"] for one in found["moves"]} <= {"orders-0", "orders-1", "orders-2"}
    assert all(one["to"] for one in found["moves"])


def test_without_speeds_there_is_no_plan() -> None:
    """It says what is missing."""
    seen = snapshot(state_of(after("a controller starts with epoch 1")), 0, is_degraded=False)
    with pytest.raises(PenstockError, match="no write speeds yet"):
        problem_of_question(seen["question"])
