"""The two walks of docs/development/architecture.md: what each row names is in its files."""

import re

import pytest

from documents import ROOT

PAGE = ROOT / "docs" / "development" / "architecture.md"
ROW = re.compile(r"^\| \d+ \| .+ \|$", re.MULTILINE)
NAME = re.compile(r"^[A-Za-z_]\w*(\.[a-z_]\w*)?(\([A-Za-z]+\))?$")
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
# Fewer files than the 48 and 24 that they were. A file that only helps one of these is not counted.
FILES_MAX = {"a": 30, "b": 23}
# A record meets one of these writers; the row of the other one is not on its way.
WRITERS = ("pipeline/pass_through_writer.py", "pipeline/dataframe_writer.py")


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


def files_on_the_way(section: str, writer: str) -> set[str]:
    """The files of all rows but those of another writer."""
    rows = [parts_of(row)[0] for row in ROW.findall(section)]
    return {file for row in rows if row[0] not in WRITERS or row[0] == writer for file in row}


def test_each_walk_is_short() -> None:
    """Fewer files than before (48 for a measurement, 24 for a record), and the page counts them."""
    text = PAGE.read_text(encoding="utf-8")
    for walk, writers, counted in (
        ("a", [""], r"\n{} files to read"),
        ("b", WRITERS, r"\n{} files for .+, {} for "),
    ):
        section = text.partition(f"## Walk ({walk})")[2].partition("\n## ")[0]
        counts = [len(files_on_the_way(section, writer)) for writer in writers]
        assert all(5 < count <= FILES_MAX[walk] for count in counts)
        assert re.search(counted.format(*counts), section), counts
