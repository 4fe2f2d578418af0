"""A table with more small files than are held at once; the bound is small here."""

import dataclasses
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kit.lake.racing_writer import carry, open_table
from penstock.pipeline import file_survey
from penstock.pipeline.upkeep import ALL_OF_IT, keep_up_table
from penstock.settings.sections import LakeSettings


@pytest.mark.parametrize("by_hand", [True, False])
def test_by_hand_every_part_is_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_hand: bool
) -> None:
    """A consumer does one part, and says that there is more."""
    monkeypatch.setattr(file_survey, "SMALL_FILES_MAX", 4)
    table = open_table(str(tmp_path))
    for number in range(12):
        assert carry(table, number % 3, 2, f"{number}")
    lake = LakeSettings(root=str(tmp_path), group="g")
    report = keep_up_table(lake, table, dataclasses.replace(ALL_OF_IT, finishes_all=by_hand))
    assert (report.files_before, report.has_more) == (12, not by_hand)
    assert report.files_after == len(table.active())
    assert (report.files_after == 1) == by_hand
    assert len(DeltaTable(table.storage.uri).to_pyarrow_table()) == 24
