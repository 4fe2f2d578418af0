"""Every decision has a number, a title, a status and a date; what is superseded says by what."""

from pathlib import Path

import pytest

from documents.decisions import FOLDER, record_of, records


def test_every_record_can_be_read() -> None:
    """Numbers are given once, and a superseded record links to what replaced it."""
    found = records()
    assert len(found) > 30
    assert len({one.number for one in found}) == len(found)
    for one in found:
        assert one.short_status == "accepted" or "](" in one.status, one.file


def test_what_no_longer_holds_is_marked() -> None:
    """The list of dependencies and the two records about the trigger."""
    status = {one.number: one.short_status for one in records()}
    assert status["0002"] == "superseded"
    assert status["0012"] == "superseded"
    assert status["0023"] == "superseded in part"


@pytest.mark.parametrize(
    "text",
    [
        "# 0099: No status\n\nDecided.\n",
        "# 0099: No date\n\n*Status: accepted.*\n",
        "# 0098: Another number\n\n*Status: accepted. Date: 2026-11-15.*\n",
    ],
)
def test_a_record_without_its_head_is_an_error(tmp_path: Path, text: str) -> None:
    """It does not pass as accepted."""
    path = tmp_path / "0099-a-record.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="0099"):
        record_of(path)


def test_the_folder_has_records_and_the_index_only() -> None:
    """A file that is neither would not be found by anybody."""
    names = {path.name for path in FOLDER.iterdir()}
    assert names == {one.file for one in records()} | {"README.md"}
