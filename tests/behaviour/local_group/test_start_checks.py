"""What a first start finds out about the capacity, and how the controller gets to know it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.cli.controller import calibrated_topics
from penstock.deployment import TrialOutcome
from penstock.errors import UsageError
from penstock.local_group.start_checks import as_flags, is_first_start, try_out
from penstock.settings import Settings, changed_settings


def test_a_first_start_times_batches_and_tells_the_controller() -> None:
    """The figures come back as the controller's own flags."""
    asked: list[Sequence[str]] = []
    told: list[str] = []

    def trial(flags: Sequence[str]) -> TrialOutcome:
        asked.append(flags)
        return TrialOutcome(capacities={"orders": 2.5e6})

    found = try_out(trial, ["--set", "x=y"], told.append, lambda: None, calibrates=True)
    assert asked == [["--calibrate", "--set", "x=y"]]
    assert "one consumer carries about 2.5 MB/s of orders" in told
    flags = as_flags(found)
    assert flags == ["--calibrated", "orders=2500000B/s"]
    assert calibrated_topics(flags[1::2]) == {"orders": 2.5e6}


def test_a_later_start_times_nothing() -> None:
    """The controller has kept what was measured."""
    asked: list[Sequence[str]] = []

    def trial(flags: Sequence[str]) -> TrialOutcome:
        asked.append(flags)
        return TrialOutcome()

    assert try_out(trial, [], lambda _: None, lambda: None) == {}
    assert asked == [[]]


def test_what_a_first_start_is(tmp_path: Path) -> None:
    """Nothing is timed where a person has set the capacity, or a controller was there before."""
    first = changed_settings(
        Settings(), {"controller.directory": str(tmp_path), "packing.capacity": "auto"}
    )
    assert is_first_start(first)
    assert not is_first_start(changed_settings(first, {"packing.capacity": "2MB/s"}))
    (tmp_path / "controller").mkdir()
    assert not is_first_start(first)


@pytest.mark.parametrize("text", ["orders", "orders=fast", "orders=0.5B/s"])
def test_a_figure_that_is_none_is_refused(text: str) -> None:
    """By name."""
    with pytest.raises(UsageError, match=f"--calibrated {text}"):
        calibrated_topics([text])
