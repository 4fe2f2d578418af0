"""Finds what a document names and the repository does not have.

Checked: relative links and their anchors, paths of files in backticks, names of tests and modules
in backticks; and, in every text file, paths that begin with `docs/`. Addresses on the web are not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FENCE = re.compile(r"^ *(```|~~~)")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
BACKTICKS = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$")
REPOSITORY_PATH = re.compile(
    r"^[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)+\.(py|md|sh|ya?ml|json|story|lock|txt|in|csv|png|svg|tpl)$"
)
FOLDER = re.compile(r"^(src|tests|docs|deploy|tools|benchmarks|setup|requirements)(/[\w.*-]+)*/?$")
TEST_NAME = re.compile(r"^test_\w+$")
MODULE = re.compile(r"^penstock(\.(?!yaml$|json$)[a-z_]+){1,5}$")
DOCS_PATH = re.compile(r"(?<![\w/.-])docs/[\w./-]*\w\.(?:md|json|yaml|png|svg)")
# A path in a document is meant from one of these.
BASES = ("", "src/penstock", "tests")
# What a user has, or a program writes: named in examples, not files of the repository.
NOT_OURS = re.compile(r"^(out|lake|state|group|shop|mine|/)")


@dataclass(frozen=True, slots=True)
class Broken:
    """A name that leads nowhere."""

    document: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {self.name}"


def broken_in(root: Path, document: Path) -> list[Broken]:
    """Everything in this Markdown file that leads nowhere."""
    shown = str(document.relative_to(root))
    return [
        Broken(shown, number, name)
        for number, line in prose(document.read_text(encoding="utf-8"))
        for name in (*_dead_links(document, line), *_unknown_names(root, document, line))
    ]


def _dead_links(document: Path, line: str) -> list[str]:
    targets = [target for target in LINK.findall(line) if "://" not in target]
    return [target for target in targets if not _link_leads_somewhere(document, target)]


def _unknown_names(root: Path, document: Path, line: str) -> list[str]:
    names = BACKTICKS.findall(line)
    return [name for name in names if not _name_is_known(root, document, name)]


def documents_named_in(root: Path, file: Path) -> list[Broken]:
    """Paths below docs/ that a source, a chart or a script names and that do not exist."""
    shown = str(file.relative_to(root))
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return [
        Broken(shown, number, name)
        for number, line in enumerate(lines, 1)
        for name in DOCS_PATH.findall(line)
        if not (root / name).exists()
    ]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without fenced blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _link_leads_somewhere(document: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (document.parent / path).resolve() if path else document
    if not file.exists():
        return False
    return not anchor or (file.suffix == ".md" and anchor in anchors(file))


def _name_is_known(root: Path, document: Path, name: str) -> bool:
    """Text that does not look like a name of ours is not judged."""
    if TEST_NAME.match(name):
        return name in _test_names(root)
    if MODULE.match(name):
        below = root / "src" / Path(*name.split("."))
        parent = below.parent
        return below.is_dir() or below.with_suffix(".py").is_file() or _is_in(parent, below.name)
    if NOT_OURS.match(name) or not (REPOSITORY_PATH.match(name) or FOLDER.match(name)):
        return True
    places = [document.parent, *(root / base for base in BASES)]
    return any(next(place.glob(name.rstrip("/")), None) is not None for place in places)


def _is_in(module: Path, name: str) -> bool:
    """Whether the last part names something inside a module."""
    file = module.with_suffix(".py")
    return (
        file.is_file() and re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) is not None
    )


@cache
def anchors(file: Path) -> frozenset[str]:
    """The anchors that a Markdown reader makes of the headings."""
    found: list[str] = []
    for _, line in prose(file.read_text(encoding="utf-8")):
        if heading := HEADING.match(line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            again = sum(1 for one in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one))
            found.append(f"{slug}-{again}" if again else slug)
    return frozenset(found)


@cache
def _test_names(root: Path) -> frozenset[str]:
    """Functions and files of the tests."""
    files = list((root / "tests").rglob("test_*.py"))
    functions = (
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    )
    return frozenset(functions) | {file.stem for file in files}
