"""Texts that are generated and committed: a test compares them, a program writes them.

`make docs` writes what is generated in documents and in the chart, `make stories` the traces of the
stories; the change is then read in the diff.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def assert_up_to_date(path: Path, text: str, writer: str = "make docs") -> None:
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    assert found == text, f"{path.relative_to(ROOT)} is out of date: `{writer}` writes it again"
