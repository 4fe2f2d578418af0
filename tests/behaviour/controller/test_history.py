"""The history tells a fault that repeats once, with a count."""

import re
from pathlib import Path
from typing import Any

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from penstock.controller.core.decisions import (
    HISTORY_MAX,
    REQUESTS_KEPT,
    Code,
    Decision,
    is_worth_a_line,
    remembered,
    told_since,
)
from penstock.controller.core.saved_state import read_content, state_as_json
from penstock.controller.core.state import State
from penstock.controller.process.loop import log_decisions

STORIES = sorted((Path(__file__).parents[2] / "stories").glob("*.story"))


def test_a_partition_that_fails_for_hours_pushes_nothing_out() -> None:
    """It is tried 500 times, each time with other words of Spark; the first start is still told."""
    history: tuple[Decision, ...] = (Decision(0, Code.FIRST_START, "nothing is deployed", 1),)
    for turn in range(500):
        at_ms = 60_000 * turn
        failed = f"orders-2 stopped (transformation_failed); tried again in 60000 ms: {turn}"
        made = f"plan {turn} (unread_partition): no consumer reads orders-2; 0 moves"
        done = f"plan {turn} is done after {turn} ms"
        history = remembered(
            history,
            [
                Decision(at_ms, Code.PARTITION_FAILED, failed, turn),
                Decision(at_ms, Code.PLAN_MADE, made, turn),
                Decision(at_ms, Code.PLAN_DONE, done, turn),
            ],
        )
    assert history[0].code is Code.FIRST_START
    assert len(history) < 10
    (fault,) = [one for one in history if one.code is Code.PARTITION_FAILED]
    assert (fault.times, fault.first_ms, fault.at_ms) == (500, 0, 60_000 * 499)
    assert fault.explanation.endswith(": 499")


def test_a_forged_report_of_many_partitions_pushes_nothing_out() -> None:
    """One message may claim a thousand partitions: the consumer is told once, with a count."""
    teller = after(*TWO_CONSUMERS)
    assert teller.state is not None
    before = [one.code for one in teller.state.history]
    rows = " ".join(f"nowhere-{number}@1.1" for number in range(2 * HISTORY_MAX))
    teller.tell(f"consumer 2 reports orders-2@1.3 {rows}")
    *others, stray = teller.state.history
    assert [one.code for one in others] == before
    assert (stray.code, stray.times) == (Code.STRAY_READER, 2 * HISTORY_MAX)


def test_requests_stay_when_much_else_is_told() -> None:
    """The newest ones: who asked for what is looked up when something has gone wrong."""
    asked = [
        Decision(turn, Code.REQUEST_ANSWERED, f"request {turn} of somebody", 1)
        for turn in range(REQUESTS_KEPT + 2)
    ]
    history = remembered((), asked)
    for turn in range(3 * HISTORY_MAX):
        other = Decision(turn, Code.PARTITION_APPEARED, f"orders-{turn} appeared", 1)
        history = remembered(history, [other])
        assert len(history) <= HISTORY_MAX
    requests = [one for one in history if one.code is Code.REQUEST_ANSWERED]
    assert requests == asked[2:]
    assert history[-1].explanation == f"orders-{3 * HISTORY_MAX - 1} appeared"


def test_a_plan_of_another_start_is_told_on_its_own() -> None:
    """A plan after a restart said `2 times in 11 min`, and the time that the other one took."""
    told = [
        Decision(at_ms, code, f"plan {number} {text}", number)
        for number, at_ms in ((2, 0), (3, 600_000), (4, 1_260_000))
        for code, text in ((Code.PLAN_MADE, "starts orders-0"), (Code.PLAN_DONE, "is done"))
    ]
    history = remembered((), told)
    assert [(one.plan_number, one.times) for one in history] == [(3, 2), (3, 2), (4, 1), (4, 1)]


def test_figures_do_not_make_a_fault_another_one() -> None:
    """The maximum binds with another load each time: told once; names are no figures."""
    told = [
        Decision(1, Code.MAXIMUM_BINDS, "2 of 2 consumers are over, with 270 B/s", 1),
        Decision(2, Code.MAXIMUM_BINDS, "2 of 2 consumers are over, with 2,801.5 B/s", 1),
        Decision(3, Code.OVERSIZE_PARTITION, "orders-1 is too fast", 1),
        Decision(4, Code.OVERSIZE_PARTITION, "orders-2 is too fast", 1),
    ]
    history = remembered((), told)
    assert [(one.at_ms, one.times) for one in history] == [(2, 2), (3, 1), (4, 1)]


def test_plans_that_move_something_are_told_one_by_one() -> None:
    """They are no faults, and neither are their ends; nor is the end of a plan nobody remembers."""
    plans = [
        Decision(n, code, f"plan {n}", n, moves=1)
        for n in (1, 2)
        for code in (Code.PLAN_MADE, Code.PLAN_DONE)
    ]
    assert len(remembered((), plans)) == 4
    assert len(remembered((), [plans[1], plans[3]])) == 2


def test_the_history_stays_bounded() -> None:
    """The newest push out the oldest."""
    many = [Decision(n, Code.SYNCHRONISED, str(n), 1) for n in range(HISTORY_MAX + 5)]
    assert remembered((), many) == tuple(many[5:])


def test_the_log_names_a_repetition_ever_more_rarely() -> None:
    """The 1st, 2nd, 4th and 8th time."""
    named = [
        n for n in range(1, 12) if is_worth_a_line(Decision(0, Code.SYNCHRONISED, "", 1, times=n))
    ]
    assert named == [1, 2, 4, 8]


class Lines:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **keys: Any) -> None:
        self.said.append((event, keys))


def test_decisions_go_to_the_log_too() -> None:
    """With code and reason; a fault that came three times has two lines."""
    log, history = Lines(), remembered((), [Decision(0, Code.FIRST_START, "nothing there", 1)])
    log_decisions(log, (), history)
    for at_ms in range(3):
        before = history
        history = remembered(history, [Decision(at_ms, Code.LISTING_FAILED, "no answer", 1)])
        log_decisions(log, before, history)
    assert log.said == [
        ("decided", {"code": "first_start", "why": "nothing there"}),
        ("decided", {"code": "listing_failed", "why": "no answer"}),
        ("decided", {"code": "listing_failed", "why": "no answer", "times": 2}),
    ]


def test_what_a_step_decided_is_found() -> None:
    """Also a fault that was told before: it is new with its count."""
    first = remembered((), [Decision(1, Code.LISTING_FAILED, "no answer", 1)])
    second = remembered(first, [Decision(2, Code.LISTING_FAILED, "no answer", 1)])
    assert told_since(first, first) == []
    assert [one.times for one in told_since(first, second)] == [2]


def test_a_history_of_an_older_release_is_read() -> None:
    """It has no counts: each of its decisions came once."""
    state = after(*TWO_CONSUMERS).state
    assert state is not None
    content = state_as_json(state)
    content["history"] = [row[:6] for row in content["history"]]
    read = read_content(content, CATALOGUE)
    assert isinstance(read, State)
    assert read.history == state.history


def test_no_decision_of_any_story_counts_milliseconds() -> None:
    """The stories' traces have nearly every decision: they say seconds and minutes."""
    traces = [line for file in STORIES for line in file.read_text(encoding="utf-8").splitlines()]
    decisions = [line for line in traces if re.match(r"  \w+: ", line)]
    assert len(decisions) > 100
    assert [line for line in decisions if re.search(r"\d ?ms\b", line)] == []
