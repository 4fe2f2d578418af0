"""What a status says in words, and what is new in it."""

from typing import Any

import pytest

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.told_status import (
    CarriedSpeed,
    ConsumerCounts,
    NewDecisions,
    consumer_counts,
    decision_text,
    doing_text,
    plain_text,
    progress_text,
    unread_partitions,
)


def seen(*lines: str) -> dict[str, Any]:
    return snapshot(state_of(after(*lines)), 0, is_degraded=False)


def decision(code: str, explanation: str, times: int = 1) -> dict[str, Any]:
    return {"code": code, "explanation": explanation, "times": times}


@pytest.mark.parametrize(
    ("code", "explanation", "text"),
    [
        (
            "plan_made",
            "plan 3 (over_capacity): 1 is over capacity; 1 move of 80 B/s, 0 starts, 0 to create",
            "plan 3: 1 is over capacity; 1 move of 80 B/s",
        ),
        (
            "plan_made",
            "plan 2 (unread_partition): nobody reads a-0, 0 moves of 0 B/s, 1 starts, 10 to create",
            "plan 2: nobody reads a-0, 1 partition to start, 10 consumers to create",
        ),
        ("plan_done", "plan 4 is done after 9.8 s", "plan 4 is done after 9.8 s"),
        ("consumer_incident", "consumer 1: died (1). Last line: [info] x", "consumer 1: died (1)."),
    ],
)
def test_a_decision_is_one_sentence(code: str, explanation: str, text: str) -> None:
    """Without what only the history needs: codes, counts of nothing, lines of logs."""
    assert decision_text(decision(code, explanation)) == text


def test_a_repeated_decision_says_how_often() -> None:
    """It is told once, with its count."""
    assert decision_text(decision("maximum_binds", "full", 3)) == "full (3 times)"


def test_real_plans_are_shortened() -> None:
    """The words are the controller's own: were they others, nothing would be left out here."""
    plans = [one for one in seen(*TWO_CONSUMERS)["history"] if one["code"] == "plan_made"]
    (plan,) = plans
    assert "(unread_partition)" in plan["explanation"]
    assert ", 0 to empty" in plan["explanation"]
    assert "unread_partition" not in decision_text(plan)
    assert ", 0 " not in decision_text(plan)


def test_consumers_are_counted_by_what_they_are() -> None:
    """Needed is the fewest that could carry the load; unknown without speeds."""
    assert consumer_counts(seen(*TWO_CONSUMERS)) == ConsumerCounts(2, 2, 0, 0)
    began = seen(*TWO_CONSUMERS[:3], "speeds orders-0=40", "tick +500", "packed 1: orders-0")
    assert consumer_counts(began) == ConsumerCounts(1, 0, 1, 0)
    assert str(consumer_counts(seen("a controller starts with epoch 1"))).startswith("? needed")


def test_what_nobody_reads_is_named_until_it_is_started() -> None:
    """A partition that is being started is not read yet."""
    assert unread_partitions(seen(*TWO_CONSUMERS)) == []
    assert unread_partitions(seen(*TWO_CONSUMERS[:-1])) == ["orders-2"]


def test_phases_have_words() -> None:
    """Also one of a later release."""
    assert doing_text(seen(*TWO_CONSUMERS)) == "watches"
    assert doing_text({"phase": "Something New"}) == "works"


def test_only_what_was_added_is_new() -> None:
    """The past of the first status is not new; a fault that came again is, with its count."""
    news = NewDecisions()
    past = [decision("a", "one"), decision("b", "two")]
    assert news.of({"history": past}) == []
    assert news.of({"history": past}) == []
    again, same = decision("a", "one", 2), decision("b", "two")
    assert news.of({"history": [past[1], again, same]}) == [again, same]
    assert news.of({"history": [again, same]}) == []


def status(at_s: float, written: float, behind: float | None, epoch: int = 1) -> dict[str, Any]:
    return {
        "at_unix_ms": round(at_s * 1000),
        "written_bytes_per_s": written,
        "behind_bytes": behind,
        "behind_is_at_most": False,
        "controller_epoch": epoch,
    }


def test_what_is_carried_is_what_is_written_less_what_waits_more() -> None:
    """1,000 a second written and 400 a second more waiting: 600 are carried."""
    carried = CarriedSpeed()
    found = [carried.of(status(at_s, 1_000, 400 * at_s)) for at_s in range(6)]
    assert found[:4] == [None] * 4
    assert found[4:] == [pytest.approx(600), pytest.approx(600)]


def test_what_is_carried_is_not_guessed() -> None:
    """A new controller, or one that does not know the backlog, begins anew."""
    carried = CarriedSpeed()
    for at_s in range(6):
        carried.of(status(at_s, 1_000, 0))
    assert carried.of(status(6, 1_000, 0)) == pytest.approx(1_000)
    assert carried.of(status(7, 1_000, 0, epoch=2)) is None
    assert carried.of(status(8, 1_000, None, epoch=2)) is None


def test_what_is_carried_is_of_the_last_seconds() -> None:
    """A backlog that is being worked off shows as more than is written."""
    carried = CarriedSpeed()
    for at_s in range(30):
        carried.of(status(at_s, 1_000, 0))
    for at_s in range(30, 45):
        last = carried.of(status(at_s, 0, 50_000 - 1_000 * at_s))
    assert last == pytest.approx(1_000)


@pytest.mark.parametrize(
    ("trend", "carried", "text"),
    [
        ("steady", 500.0, "keeping up: 9,000 records wait, and they get neither more nor fewer"),
        ("steady", None, "nothing is carried: 9,000 records wait"),
    ],
)
def test_a_backlog_that_stays_is_told_by_what_is_carried(
    trend: str, carried: float | None, text: str
) -> None:
    """A group that carries nothing does not keep up."""
    status = {"backlog": {"trend": trend}, "behind_records": 9_000, "carried_bytes_per_s": carried}
    assert progress_text(status) == text


LATE = {"behind_records": 38_489, "freshness_s": 158.0, "objective_freshness_s": 10.0}
MANY, OLD, ASKED = "38,489 records wait", "the oldest for about 2 min 38 s", "the objective is 10 s"


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, f"not fresh: {MANY}, {OLD}; {ASKED}"),
        (
            {"behind_records": 1, "freshness_s": 12.1},
            f"not fresh: 1 record waits, the oldest for about 12 s; {ASKED}",
        ),
        (
            {"freshness_s": None, "behind_s": 60.0},
            f"not fresh: {MANY}, as much as is written in 1 min; {ASKED}",
        ),
        (
            {"backlog": {"trend": "steady"}, "carried_bytes_per_s": 5.0},
            f"not fresh: {MANY}, {OLD}; {ASKED}; they get neither more nor fewer",
        ),
        ({"freshness_s": 12.0}, "all is well"),
        ({"freshness_s": None, "behind_s": None}, "all is well"),
        (
            {"freshness_s": None, "freshness_at_least_s": 3_600.0, "behind_s": 0.02},
            f"not fresh: {MANY}, the oldest for at least 1 h; {ASKED}",
        ),
        ({"behind_is_at_most": True}, f"not fresh: at most {MANY}, {OLD}; {ASKED}"),
        ({"behind_records": 0}, "all is well"),
        ({"objective_freshness_s": None}, "all is well"),
    ],
)
def test_a_group_that_misses_its_objective_is_not_called_well(
    changed: dict[str, Any], text: str
) -> None:
    """`all is well` was told of a lake that was 158 s old, with an objective of 10 s."""
    found = {"backlog": {"trend": "small"}, **LATE, **changed}
    assert progress_text(found) == text


def test_a_backlog_that_may_be_less_is_not_told_as_late() -> None:
    """Right after a start the whole log is counted, where no offset of the ledger is known yet."""
    status = {**LATE, "freshness_s": None, "behind_s": 900.0, "behind_is_at_most": True}
    text = progress_text({**status, "backlog": {"trend": "unknown"}})
    assert text.startswith("too early to tell: at most 38,489 records wait, and whether")


def test_a_count_that_nobody_can_have_is_left_as_it_is() -> None:
    """A status may be forged, and Python refuses to read a number of thousands of digits."""
    forged = f"plan 2 (calm): 3 partitions, {'1' * 5_000} starts"
    assert plain_text("plan_made", forged) == forged.replace(" (calm)", "")
