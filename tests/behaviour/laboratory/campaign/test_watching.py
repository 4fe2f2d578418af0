"""How a campaign reads the controller's decisions."""

import re
from pathlib import Path
from typing import Any

from penstock.laboratory.campaign.figures import CREATED, FENCED, REMOVED
from penstock.laboratory.campaign.watching import new_decisions

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


def test_the_same_decision_later_is_another_one() -> None:
    """A number is used again, and its new consumer may be given up too."""
    known = new_decisions([], [entry(0, FENCED, "consumer 1 is silent: fenced")], 10_000, 0)
    later = new_decisions(known, [entry(0, FENCED, "consumer 1 is silent: fenced")], 12_000, 0)
    assert [one.at_s for one in later] == [12.0]


def test_decisions_about_other_things_are_left_out() -> None:
    """A plan is no decision about one consumer."""
    assert new_decisions([], [entry(0, "plan_made", "plan 3: 2 moves")], 10_000, 0) == []
