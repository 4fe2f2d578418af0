"""What a machine needs is said in the same words everywhere, and as the package has it."""

import re
import tomllib
from pathlib import Path

import pytest

from documents import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NEEDED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "requires-python"
].removeprefix(">=")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_python_that_is_needed_is_said_once_and_the_same(page: Path) -> None:
    """README said 3.11, docs/start.md said 3.11 or newer: a newcomer with 3.12 could not tell."""
    text = " ".join(page.read_text(encoding="utf-8").split())
    said = re.findall(r"Python 3\S*(?: or newer)?", text)
    assert said in ([], [f"Python {NEEDED} or newer"])


def test_the_pages_where_one_begins_say_it() -> None:
    """In one sentence, with the rest of what is needed."""
    sentence = f"Linux, Python {NEEDED} or newer, and Java 17"
    for name in ("README.md", "docs/start.md", "docs/typed-tables.md"):
        assert sentence in (ROOT / name).read_text(encoding="utf-8"), name
