"""Words that only insiders understood do not come back as names in the code."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "penstock"
MODULES = sorted(SOURCE.rglob("*.py"))
# Each once named a part of Penstock. docs/glossary.md has the words that took their places.
# fmt: off
PRIVATE_WORDS = frozenset({
    "ambush", "befell", "book", "books", "care", "ear", "ears", "hands", "hear", "hearing",
    "informing", "life", "listened", "lives", "opening", "page", "room", "saying", "sayings",
    "speech", "spoke", "standing", "standings", "straight", "turn", "turns", "voice", "witness",
    "words", "world", "worlds",
})
# fmt: on
# Ordinary uses: a page of a study, of HTML, of a listing by the Kubernetes API, and the live page.
ALLOWED = frozenset(
    {
        "PAGE",
        "PageSettings",
        "_page",
        "_page_flags",
        "_start_page",
        "_with_page",
        "page",
        "page_address",
        "page_text",
        "run_page",
        "with_page",
        "write_page",
    }
)


def words_of(name: str) -> set[str]:
    """`ConsumerSpoke` and `consumer_spoke` -> consumer, spoke."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def private_names(text: str) -> list[str]:
    """Every name of a class, function, argument, variable, field or import with such a word."""
    names = {
        name
        for node in ast.walk(ast.parse(text))
        for field in ("name", "id", "attr", "arg", "asname")
        if isinstance(name := getattr(node, field, None), str)
    }
    return sorted(name for name in names - ALLOWED if words_of(name) & PRIVATE_WORDS)


def test_no_name_has_a_private_word() -> None:
    """Neither inside a module, nor the modules and their folders themselves."""
    found = {}
    for path in MODULES:
        place = path.relative_to(SOURCE)
        parts = set(place.with_suffix("").parts) - ALLOWED
        inside = private_names(path.read_text(encoding="utf-8"))
        private = [*inside, *(part for part in parts if words_of(part) & PRIVATE_WORDS)]
        if private:
            found[str(place)] = private
    assert found == {}


def test_a_private_word_is_found() -> None:
    """In every spelling and every kind of name; a longer word that contains one is none."""
    text = """
import voice as loud
class ConsumerSpoke:
    has_room: bool
def take_turn(hearing, returned):
    write_page(hearing.listened_ms, saturn=1)
"""
    expected = ["ConsumerSpoke", "has_room", "hearing", "listened_ms", "take_turn", "voice"]
    assert private_names(text) == expected
    assert len(MODULES) > 200
