"""The examples of the documents: which there are, and how each is run.

A comment on the line before a fenced block says what a test does with it:

    <!-- run -->               a shell, in an empty folder, without a broker
    <!-- run: broker -->       the same; it starts a broker of its own
    <!-- run: group -->        line by line, beside a running group
    <!-- run: as NAME -->      a test that knows this name runs it
    <!-- settings -->          a settings file that loads
    <!-- values -->            values that the Helm chart takes
    <!-- not run: REASON -->   a person ran it; the reason says why no test does

Every block of shell commands, YAML and Python has such a comment.
"""

import re
from dataclasses import dataclass
from pathlib import Path

MARK = re.compile(r"^\s*<!-- (?P<mark>run|run: \w[^>]*|settings|values|not run: [^>]+) -->\s*$")
OPENING = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\s*$")
RUNNABLE = frozenset({"sh", "yaml", "python"})


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block; `mark` is empty when nobody said what to do with it."""

    document: str
    line: int
    language: str
    mark: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, those that go on joined, without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        bare = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in lines)
        return [line for line in bare if line]


def examples_in(root: Path, document: Path) -> list[Example]:
    lines = document.read_text(encoding="utf-8").splitlines()
    shown = str(document.relative_to(root))
    found: list[Example] = []
    begin: int | None = None
    language, indent = "", 0
    for number, line in enumerate(lines):
        if begin is None:
            if opening := OPENING.match(line):
                begin, language, indent = number, opening["language"], len(opening["indent"])
        elif line.strip() == "```":
            text = "\n".join(one[indent:] for one in lines[begin + 1 : number]) + "\n"
            before = MARK.match(lines[begin - 1]) if begin else None
            mark = before["mark"] if before else ""
            found.append(Example(shown, begin + 1, language, mark, text))
            begin = None
    return [one for one in found if one.language in RUNNABLE]
