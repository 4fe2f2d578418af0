"""The settings that choose the packing algorithm."""

import pytest

from penstock.errors import SettingsError
from penstock.packing import ALGORITHMS
from penstock.settings import Settings, load_settings


def test_settings_build_the_algorithm() -> None:
    """What the operator sets is what the packer gets, and CHAIN is the default."""
    packing = load_settings(None, {"packing.knob": "0.2"}, {}).settings.packing
    assert packing.chosen_algorithm().name == "CHAIN@0.2"
    assert Settings().packing.chosen_algorithm() == ALGORITHMS[0]


def test_an_unknown_algorithm_is_a_settings_error() -> None:
    """An unknown algorithm is a settings error that lists the known ones."""
    with pytest.raises(SettingsError, match="no packing algorithm 'XYZ'"):
        load_settings(None, {"packing.algorithm": "XYZ"}, {})


@pytest.mark.parametrize("algorithm", ["MWF", "CHAIN@0.3", "chain@0.5"])
def test_a_knob_without_effect_is_a_settings_error(algorithm: str) -> None:
    """The algorithm has no knob, or its name sets it."""
    flags = {"packing.algorithm": algorithm, "packing.knob": "0.9"}
    with pytest.raises(SettingsError, match=r"knob 0\.9 has no effect"):
        load_settings(None, flags, {})
    del flags["packing.knob"]
    assert load_settings(None, flags, {}).settings.packing.algorithm == algorithm.upper()
