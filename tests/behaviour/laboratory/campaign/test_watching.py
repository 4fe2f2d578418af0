"""How a campaign reads the controller's decisions."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.decisions import Code, Decision
from penstock.controller.process.saved_states import SavedStates
from penstock.deployment import DeploymentTemplate
from penstock.laboratory.campaign.figures import CREATED, FENCED, REMOVED
from penstock.laboratory.campaign.watching import new_decisions
from penstock.state_directory import StateDirectory
from penstock.telemetry import get_logger

STORIES = Path(__file__).parents[3] / "stories"


def entry(age_ms: int, code: str, explanation: str) -> dict[str, Any]:
    return {"age_ms": age_ms, "code": code, "explanation": explanation}


def test_every_decision_about_a_consumer_names_it_as_the_stories_do() -> None:
    """The controller's own sentences, as its stories record them, are understood."""
    found = {CREATED: 0, FENCED: 0, REMOVED: 0}
    for story in sorted(STORIES.glob("*.story")):
        for line in story.read_text(encoding="utf-8").splitlines():
            said = re.fullmatch(rf"\s+({'|'.join(found)}): (.*)", line)
            if said is not None:
                (one,) = new_decisions([], [entry(0, said[1], said[2])], 5000, 0)
                assert one.code == said[1]
                assert f"consumer {one.consumer} " in said[2]
                found[said[1]] += 1
    assert all(found.values()), found


def test_a_decision_is_counted_once_although_every_status_repeats_it() -> None:
    """Its age grows from status to status; its time is that since the campaign began."""
    first = new_decisions([], [entry(2000, FENCED, "consumer 1 is silent: fenced")], 52_000, 40_000)
    assert [one.at_s for one in first] == [10.0]
    again = [
        entry(3500, FENCED, "consumer 1 is silent: fenced"),
        entry(100, FENCED, "consumer 2 is silent: fenced"),
    ]
    assert [one.consumer for one in new_decisions(first, again, 53_500, 40_000)] == [2]


def test_a_decision_is_counted_once_although_the_next_controller_dates_it_anew(
    tmp_path: Path,
) -> None:
    """Each reads its clocks in whole milliseconds: its times may differ by one."""
    directory = StateDirectory(tmp_path / "state", f"{CATALOGUE.lake.group}/controller")
    state = state_of(after(*TWO_CONSUMERS))
    decided = state.history[-1]
    gone = replace(decided, code=Code.CONSUMER_FENCED, explanation="consumer 1 is silent: fenced")
    state = replace(state, history=(*state.history, gone))

    def entries(history: Iterable[Decision], now_ms: int) -> list[dict[str, Any]]:
        return [entry(now_ms - one.at_ms, one.code.value, one.explanation) for one in history]

    def states(now_ms: float) -> SavedStates:
        clocks = {"now_ms": lambda: int(now_ms), "unix_ms": lambda: int(now_ms + 85_000.4)}
        return SavedStates(CATALOGUE, directory, get_logger(component="test"), **clocks)

    with directory:
        states(500_000.9).save(state, DeploymentTemplate(), 1)
        read = states(502_000.0).in_file().state
    assert read is not None
    assert read.history[-1].at_ms == gone.at_ms + 1
    known = new_decisions([], entries(state.history, 500_000), 500_000, 0)
    assert FENCED in {one.code for one in known}
    assert new_decisions(known, entries(read.history, 502_000), 502_000, 0) == []


def test_the_same_decision_later_is_another_one() -> None:
    """A number is used again, and its new consumer may be given up too."""
    known = new_decisions([], [entry(0, FENCED, "consumer 1 is silent: fenced")], 10_000, 0)
    later = new_decisions(known, [entry(0, FENCED, "consumer 1 is silent: fenced")], 12_000, 0)
    assert [one.at_s for one in later] == [12.0]


def test_decisions_about_other_things_are_left_out() -> None:
    """A plan is no decision about one consumer."""
    assert new_decisions([], [entry(0, "plan_made", "plan 3: 2 moves")], 10_000, 0) == []
