"""The two walks of docs/development/architecture.md: what each row names is in its files."""

import re

import pytest

from documents import ROOT

PAGE = ROOT / "docs" / "development" / "architecture.md"
ROW = re.compile(r"^\| \d+ \| .+ \|$", re.MULTILINE)
NAME = re.compile(r"^[A-Za-z_]\w*(\.[a-z_]\w*)?(\([A-Za-z]+\))?$")
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
# The second must be shorter than the 24 files it was; every file on the way is in it.
FILES_MAX = {"a": 30, "b": 23}


def parts_of(row: str) -> tuple[list[str], list[str]]:
    """Files and names in backticks."""
    quoted = re.findall(r"`([^`]+)`", row)
    files = [text for text in quoted if text.endswith(".py")]
    return files, [text for text in quoted if text not in files]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_what_its_files_have(row: str) -> None:
    """A function or a type that was renamed or moved is renamed in the walk."""
    files, names = parts_of(row)
    text = "".join((ROOT / "src" / "penstock" / file).read_text(encoding="utf-8") for file in files)
    for name in names:
        assert NAME.match(name), name
        for word in re.findall(r"\w+", name):
            assert re.search(rf"\b{word}\b", text), f"{name} is not in {files}"


def test_each_walk_is_short() -> None:
    """Fewer files than before (48 for a measurement, 24 for a record), and the page counts them."""
    text = PAGE.read_text(encoding="utf-8")
    for walk, most in FILES_MAX.items():
        section = text.partition(f"## Walk ({walk})")[2].partition("\n## ")[0]
        files = {file for row in ROW.findall(section) for file in parts_of(row)[0]}
        assert 5 < len(files) <= most
        assert f"\n{len(files)} files" in section
