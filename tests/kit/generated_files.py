"""Compares generated files with the committed ones, or writes them again.

`PENSTOCK_REWRITE=1 pytest ...` writes a file instead of comparing it. Stories, schemas, the state
machine's diagram and tables in the docs use it.
"""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]


def is_rewriting() -> bool:
    return os.environ.get("PENSTOCK_REWRITE") == "1"


def assert_up_to_date(path: Path, text: str) -> None:
    if is_rewriting():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    assert found == text, f"{path.name} is out of date; PENSTOCK_REWRITE=1 writes it again"


def assert_section_up_to_date(path: Path, name: str, text: str) -> None:
    """The part of a document between `<!-- begin: name -->` and `<!-- end: name -->`."""
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    whole = path.read_text(encoding="utf-8")
    before, found_begin, rest = whole.partition(begin)
    _, found_end, after = rest.partition(end)
    assert found_begin, f"{path.name} has no section {name}"
    assert found_end, f"{path.name} has no end of section {name}"
    assert_up_to_date(path, before + begin + text.rstrip("\n") + "\n" + end + after)
