"""docs/packing.md, kept in step with the catalogue; and the settings that choose from it."""

import pytest

from kit.kept_in_step import ROOT, assert_section_kept_in_step
from penstock.errors import SettingsError
from penstock.packing import ALGORITHMS
from penstock.settings import Settings, load_settings


def test_the_table_of_algorithms_is_the_catalogue() -> None:
    """Every algorithm with its sentence, in the catalogue's order."""
    lines = ["| algorithm | when to use it |", "|---|---|"]
    lines += [f"| {algorithm.name} | {algorithm.sentence} |" for algorithm in ALGORITHMS]
    assert_section_kept_in_step(ROOT / "docs" / "packing.md", "algorithms", "\n".join(lines) + "\n")


def test_settings_build_the_algorithm() -> None:
    """What the operator sets is what the packer gets, and CHAIN is the default."""
    packing = load_settings(None, {"packing.knob": "0.2"}, {}).settings.packing
    assert packing.chosen_algorithm().name == "CHAIN@0.2"
    assert Settings().packing.chosen_algorithm() == ALGORITHMS[0]


def test_an_unknown_algorithm_is_a_settings_error() -> None:
    """It says what there is."""
    with pytest.raises(SettingsError, match="no packing algorithm 'XYZ'"):
        load_settings(None, {"packing.algorithm": "XYZ"}, {})
