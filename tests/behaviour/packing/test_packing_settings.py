"""The settings that build the packing algorithm and the trigger's policy."""

import pytest

from penstock.errors import SettingsError
from penstock.packing import ALGORITHMS
from penstock.packing.trigger import TriggerPolicy
from penstock.settings import Settings, load_settings


def test_settings_build_the_algorithm_and_the_policy() -> None:
    """The settings reach the packer and the trigger."""
    flags = {
        "packing.knob": "0.2",
        "packing.capacity": "3MB/s",
        "packing.hysteresis": "0.25",
        "packing.scale_down_period": "10m",
        "packing.consumers_max": "7",
    }
    packing = load_settings(None, flags, {}).settings.packing
    assert packing.chosen_algorithm().name == "CHAIN@0.2"
    policy = packing.trigger_policy(plan_interval_s=4)
    assert policy.repack_interval_s == 4
    assert policy.capacity_bytes_per_s == 3e6
    assert policy.packing_capacity_bytes_per_s == 2.25e6
    assert (policy.scale_down_period_s, policy.consumers_max) == (600, 7)


def test_defaults_of_settings_are_the_defaults_of_the_policy() -> None:
    """The defaults of the settings are those of the policy."""
    packing, interval_s = Settings().packing, Settings().controller.plan_interval
    found = packing.trigger_policy(plan_interval_s=interval_s)
    assert found == TriggerPolicy(capacity_bytes_per_s=packing.capacity)
    assert packing.chosen_algorithm() == ALGORITHMS[0]


def test_an_unknown_algorithm_is_a_settings_error() -> None:
    """An unknown algorithm is a settings error that lists the known ones."""
    with pytest.raises(SettingsError, match="no packing algorithm 'XYZ'"):
        load_settings(None, {"packing.algorithm": "XYZ"}, {})
