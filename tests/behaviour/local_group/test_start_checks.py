"""What a first start finds out about the capacity, and how the controller gets to know it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.options import calibrated_topics
from penstock.controller.core.state_machine import Machine
from penstock.controller.process.saved_states import SavedStates
from penstock.deployment import DeploymentTemplate, TrialOutcome
from penstock.errors import UsageError
from penstock.local_group.start_checks import as_flags, known_topics, try_out
from penstock.settings import Settings, changed_settings
from penstock.state_directory import StateDirectory, encode_state


def test_a_first_start_times_batches_and_tells_the_controller() -> None:
    """The figures come back as the controller's own flags."""
    asked: list[Sequence[str]] = []
    told: list[str] = []

    def trial(flags: Sequence[str]) -> TrialOutcome:
        asked.append(flags)
        found = {"orders": 2.5e6, "slow": 5e4}
        return TrialOutcome(capacities=found, at_least=frozenset({"slow"}))

    found = try_out(trial, ["--set", "x=y"], told.append, lambda: None, calibrates=True)
    assert asked == [["--calibrate", "--set", "x=y"]]
    assert "one consumer carries about 2.5 MB/s of orders" in told
    assert "one consumer carries at least 50 kB/s of slow" in told
    flags = as_flags(found)
    assert flags == ["--calibrated", "orders=2500000B/s", "--calibrated", "slow=50000B/s"]
    assert calibrated_topics(flags[1::2]) == {"orders": 2.5e6, "slow": 5e4}


def test_where_a_person_has_set_the_capacity_nothing_is_timed() -> None:
    """It always wins."""
    asked: list[Sequence[str]] = []

    def trial(flags: Sequence[str]) -> TrialOutcome:
        asked.append(flags)
        return TrialOutcome()

    assert try_out(trial, [], lambda _: None, lambda: None) == {}
    assert asked == [[]]


def test_a_later_start_times_what_is_not_known() -> None:
    """A first start on empty topics finds out nothing, and topics are made later."""
    asked: list[Sequence[str]] = []

    def trial(flags: Sequence[str]) -> TrialOutcome:
        asked.append(flags)
        return TrialOutcome()

    known = frozenset({"orders", "clicks"})
    try_out(trial, ["--set", "x=y"], lambda _: None, lambda: None, calibrates=True, known=known)
    assert asked == [["--calibrate", "--known", "clicks", "--known", "orders", "--set", "x=y"]]


def test_a_start_tells_what_is_doubtful() -> None:
    """Also that some partitions would stop."""
    told: list[str] = []
    outcome = TrialOutcome(warning="1 partition would stop, as orders-0")
    try_out(lambda _: outcome, [], told.append, lambda: None)
    assert told[-1] == (
        "warning: the group starts all the same, but 1 partition would stop, as orders-0"
    )


def test_what_is_known_is_in_the_saved_state(tmp_path: Path) -> None:
    """The controller's folder alone says nothing: it may have run on empty topics."""
    settings = changed_settings(Settings(), {"controller.directory": str(tmp_path)})
    assert known_topics(settings) == frozenset()
    (tmp_path / "controller").mkdir()
    assert known_topics(settings) == frozenset()
    file = tmp_path / "controller" / "state"
    states: list[dict[str, Any]] = [
        {"capacities": {"orders": [1e6, 1e6, 1e6, "measured"], "odd": 5, "none": None}},
        {},
        {"capacities": 5},
    ]
    for state in states:
        file.write_bytes(encode_state(f"{settings.lake.group}/controller", {"state": state}))
        expected = {"orders"} if "orders" in str(state) else set()
        assert known_topics(settings) == expected
    rows = {"orders": [1e6, 1e6, 1e6, "assumed"], "clicks": [1e6, 1e6, 1e6, "calibrated"]}
    content = {"state": {"capacities": rows}}
    file.write_bytes(encode_state(f"{settings.lake.group}/controller", content))
    assert known_topics(settings) == {"clicks"}
    file.write_bytes(encode_state("other/controller", {"state": {"capacities": {"orders": []}}}))
    assert known_topics(settings) == frozenset()
    file.write_bytes(b"damaged")
    assert known_topics(settings) == frozenset()


def test_what_a_controller_saves_is_known(tmp_path: Path) -> None:
    """As it writes it."""
    settings = changed_settings(Settings(), {"controller.directory": str(tmp_path)})
    state, _ = Machine().begin(
        controller_epoch=1, settings=settings, now_ms=0, calibrated={"orders": 2e6}
    )
    directory = StateDirectory(tmp_path / "controller", f"{settings.lake.group}/controller")
    with directory:
        saved = SavedStates(settings, directory, None, now_ms=lambda: 0, unix_ms=lambda: 0)
        saved.save(state, DeploymentTemplate(), 0)
        assert known_topics(settings) == {"orders"}


@pytest.mark.parametrize("text", ["orders", "orders=fast", "orders=0.5B/s"])
def test_a_figure_that_is_none_is_refused(text: str) -> None:
    """By name."""
    with pytest.raises(UsageError, match=f"--calibrated {text}"):
        calibrated_topics([text])
