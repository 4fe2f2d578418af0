"""Settings that follow the objective, where nobody has set them."""

from pathlib import Path

import pytest

from penstock.errors import SettingsError
from penstock.packing.objective import Measured, derived_options
from penstock.settings import Settings, changed_settings, load_settings
from penstock.settings.objective import is_set, objective_of, with_objective
from penstock.settings.tree import known_options


def test_the_default_objective_gives_the_defaults() -> None:
    """So a program that starts from the catalogue has what a settings file gives."""
    for one in derived_options(objective_of(Settings())):
        assert known_options()[tuple(one.option.split("."))].default == one.value, one.option
    assert with_objective(Settings())[0] == Settings()


def test_everything_follows_the_objective() -> None:
    """With the objective as the origin, and the reason."""
    loaded = load_settings(flags={"objective.freshness": "2s"}, environment={}, cores=2)
    settings = loaded.settings
    assert settings.consumer.batch_time == pytest.approx(0.6)
    assert settings.packing.target_utilisation < Settings().packing.target_utilisation
    assert loaded.derived["consumer", "batch_time"] == (
        "objective: 0.3 of 2 s: a record waits for the batch before, and its own"
    )
    assert ("consumer", "batch_time") not in loaded.origin


def test_what_a_person_sets_stays(tmp_path: Path) -> None:
    """By a file, the environment or a flag."""
    file = tmp_path / "penstock.yaml"
    file.write_text("packing: {target_utilisation: 0.7}\n", encoding="utf-8")
    loaded = load_settings(
        file,
        flags={"objective.freshness": "120s", "controller.catch_up": "77s"},
        environment={"PENSTOCK_CONSUMER__BATCH_PERIOD": "3s"},
        cores=2,
    )
    settings = loaded.settings
    assert settings.packing.target_utilisation == 0.7
    assert settings.controller.catch_up == 77
    assert settings.consumer.batch_period == 3
    assert settings.consumer.batch_time == 10
    assert ("packing", "target_utilisation") not in loaded.derived
    assert is_set(settings, "packing.target_utilisation")
    assert not is_set(settings, "consumer.batch_time")


def test_alerts_hold_to_an_objective_that_is_set() -> None:
    """Where nobody has set one, or their own number is set, they keep theirs."""
    assert Settings().telemetry.freshness_objective == 300
    for given, expected_s in (("45s", 45), ("2s", 10), ("2h", 7200)):
        loaded = load_settings(flags={"objective.freshness": given}, environment={}, cores=2)
        assert loaded.settings.telemetry.freshness_objective == expected_s
        assert loaded.derived["telemetry", "freshness_objective"].startswith("objective: ")
        assert not is_set(loaded.settings, "telemetry.freshness_objective")
    own = {"objective.freshness": "45s", "telemetry.freshness_objective": "3m"}
    assert changed_settings(Settings(), own).telemetry.freshness_objective == 180
    share = changed_settings(Settings(), {"objective.share": 0.9})
    assert share.telemetry.freshness_objective == 300


def test_batches_stay_in_order() -> None:
    """A batch behind a backlog is never shorter than another, whichever of them is set."""
    long = changed_settings(Settings(), {"objective.freshness": "2m"})
    assert (long.consumer.batch_time, long.consumer.backlog_batch_time) == (10, 20)
    changes = {"objective.freshness": "2m", "consumer.backlog_batch_time": "5s"}
    bounded = changed_settings(Settings(), changes).consumer
    assert (bounded.batch_time, bounded.backlog_batch_time) == (5, 5)
    changes = {"objective.freshness": "2s", "consumer.batch_time": "3s"}
    raised = changed_settings(Settings(), changes).consumer
    assert (raised.batch_time, raised.backlog_batch_time) == (3, 3)


def test_what_was_measured_counts_again() -> None:
    """A derived value stays open: a change of anything else does not freeze it."""
    measured, _ = with_objective(Settings(), Measured(rise=0.0))
    assert measured.packing.target_utilisation > Settings().packing.target_utilisation
    changed = changed_settings(measured, {"packing.knob": 0.3})
    assert changed.packing.target_utilisation == Settings().packing.target_utilisation
    assert not is_set(changed, "packing.target_utilisation")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("objective.freshness", "100ms", "greater than or equal to 1"),
        ("objective.share", "1", "less than or equal to 0.9999"),
        ("packing.freeze", "['9 to 10']", "is not a time of the day"),
        ("packing.time_zone", "Nowhere/Here", "not a time zone"),
    ],
)
def test_wrong_values_are_refused(option: str, value: str, said: str) -> None:
    """With the option and the reason."""
    with pytest.raises(SettingsError, match=said):
        load_settings(flags={option: value}, environment={})


def test_one_time_of_the_day_needs_no_list(tmp_path: Path) -> None:
    """A single text counts as a list of one."""
    file = tmp_path / "penstock.yaml"
    file.write_text("packing: {no_scale_down: 'mon-fri 08:00-09:00'}\n", encoding="utf-8")
    found = load_settings(file, environment={}).settings.packing
    assert found.no_scale_down == ["mon-fri 08:00-09:00"]
