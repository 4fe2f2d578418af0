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
