"""Each planted bug is caught by the detectors that docs/development/invariants.md lists."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.consumer.consumer_script import a_query_waits_for_the_commands_before_it
from kit.controller.planted_bugs import BUGS, PlantedBug
from kit.controller.story import told
from kit.generated_files import ROOT
from penstock.controller.core.invariants import InvariantError
from penstock.laboratory.exhaustive_model.search import explore
from penstock.laboratory.protocol_simulation.campaign import run
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.laboratory.protocol_simulation.scenario import scenario

pytestmark = pytest.mark.campaign

STORIES = ROOT / "tests" / "stories"

# Where each is caught quickest. Others may catch it too; these are checked every time.
CAUGHT_BY: dict[str, tuple[str, ...]] = {
    "start before stop": ("story 06", "small group"),
    "stop not waited for": ("story 06", "small group", "seed 5"),
    "epoch check dropped": ("seed 0", "small group"),
    "highest offset wins": ("seed 39",),
    "partition forgotten": ("story 01", "seed 0"),
    "epoch used again": ("story 01", "seed 9"),
    "busy consumer deleted": ("story 01", "small group", "seed 0"),
    "waits for ever": ("story 23", "seed 16"),
    "answers before its commands": ("script",),
    "stops in mid-batch": ("seed 5",),
    "late messages believed": ("seed 125",),
    "former incarnation believed": ("story 12", "seed 125"),
    "report acknowledges too much": ("story 31",),
    "clock put off": ("seed 0",),
    "sends before it saves": ("story 01", "small group", "seed 0"),
    "ended epochs forgotten": ("seed 60",),
    "vanished still read": ("seed 24",),
    "refusal swallowed": ("seed 106",),
    "put off for ever": ("seed 0",),
    "ledger not asked again": ("seed 89",),
    "Spark not started again": ("seed 20",),
    "new topic not noticed": ("seed 109",),
    "two leaders": ("story 18", "seed 7"),
    "stops are not sent": ("story 06",),
    "stop events ignored": ("story 06",),
}


def story(number: str) -> Path:
    (path,) = STORIES.glob(f"{number}-*.story")
    return path


def finding(detector: str) -> str | None:
    """What the detector finds, or None."""
    kind, _, which = detector.partition(" ")
    if kind == "story":
        text = story(which).read_text(encoding="utf-8")
        try:
            return None if told(text) == text else "the trace differs"
        except (InvariantError, AssertionError) as error:
            return _short(error)
    if kind == "seed":
        outcome = run(scenario(int(which)))
        return outcome.explanation.partition(": ")[2][:90] if outcome.verdict == "red" else None
    try:
        if kind == "script":
            a_query_waits_for_the_commands_before_it()
        else:
            explore(1, records=1)
            explore(2, records=0)
    except (InvariantError, ViolationError, AssertionError) as error:
        return _short(error)
    return None


def _short(error: Exception) -> str:
    return str(error).partition("\n")[0][:90]


@pytest.fixture
def planted(request: pytest.FixtureRequest) -> Iterator[PlantedBug]:
    with pytest.MonkeyPatch.context() as patch:
        bug: PlantedBug = request.param
        bug.plant(patch)
        yield bug


@pytest.mark.parametrize("planted", BUGS, indirect=True, ids=lambda bug: bug.name)
def test_the_bug_is_caught(planted: PlantedBug) -> None:
    """Every listed detector finds the bug."""
    for detector in CAUGHT_BY[planted.name]:
        assert finding(detector) is not None, f"{detector} does not see: {planted.explanation}"


@pytest.mark.parametrize("detector", sorted({d for ds in CAUGHT_BY.values() for d in ds}))
def test_without_a_bug_nothing_is_found(detector: str) -> None:
    """No detector finds anything without a bug."""
    assert finding(detector) is None


def test_every_planted_bug_has_a_detector() -> None:
    """Every planted bug has a detector, and there are at least twelve bugs."""
    assert {bug.name for bug in BUGS} == set(CAUGHT_BY)
    assert len(BUGS) >= 12
