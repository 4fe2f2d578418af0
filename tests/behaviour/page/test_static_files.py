"""The rules of the page's own files: no markup from values, nothing foreign, short modules."""

import re

import pytest

from penstock.page.process.static_files import static_files

FILES = {name: one.content.decode("utf-8") for name, one in static_files().items()}
MODULES = sorted(name for name in FILES if name.endswith(".js"))
SVG_NAME = "http://www.w3.org/2000/svg"
# Ways to make markup or code of a text, and style attributes, which the policy would refuse.
FORBIDDEN = re.compile(
    r"innerHTML\s*=|outerHTML\s*=|insertAdjacentHTML|document\.write|DOMParser|\beval\(|"
    r"new Function|cssText|createContextualFragment"
)
LINES_MAX = 400


def test_the_page_has_its_files() -> None:
    """One page, one style sheet, an icon and modules."""
    assert {"index.html", "style.css", "favicon.svg", "main.js"} <= FILES.keys()
    assert len(MODULES) > 10


@pytest.mark.parametrize("name", MODULES)
def test_a_module_opens_with_its_story_and_makes_no_markup(name: str) -> None:
    """A comment first, at most 400 lines, and values only ever as text."""
    text = FILES[name]
    assert text.startswith("// ")
    assert text.count("\n") <= LINES_MAX
    assert FORBIDDEN.search(text) is None


def test_the_rule_finds_what_it_forbids() -> None:
    """A rule that never fails proves nothing."""
    assert FORBIDDEN.search("host.innerHTML = name")
    assert FORBIDDEN.search('list.insertAdjacentHTML("beforeend", name)')


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_names_an_address_of_elsewhere(name: str) -> None:
    """The page works without internet: no address, no import of another package's style."""
    text = FILES[name].replace(SVG_NAME, "")
    assert re.search(r"https?://|//cdn|@import", text) is None


def test_the_page_has_no_inline_script_or_style() -> None:
    """The content security policy would refuse them."""
    page = FILES["index.html"]
    assert re.search(r"<script(?![^>]*\bsrc=)", page) is None
    assert "<style" not in page
    assert re.search(r"\s(?:style|on\w+)=", page) is None


def test_every_element_that_a_module_asks_for_by_its_name_exists() -> None:
    """A name that is spelled otherwise in the page would fail only in the browser."""
    asked = {found for name in MODULES for found in re.findall(r'byId\("([\w-]+)"\)', FILES[name])}
    there = set(re.findall(r'\bid="([\w-]+)"', FILES["index.html"]))
    assert len(asked) > 10
    assert asked - there == {"penstock-run"}  # in a recording only
