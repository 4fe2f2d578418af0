"""The table of decisions, from the records themselves: number, title, status, date.

A record begins with `# 0001: title` and, as its first paragraph in italics, its status and date:
`*Status: accepted. Date: 2026-11-15.*`. A status that begins with "superseded" names what replaced
the record.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from documents import ROOT

FOLDER = ROOT / "docs" / "development" / "decisions"
HEAD = re.compile(
    r"\A# (?P<number>\d{4}): (?P<title>[^\n]+)\n\n"
    r"\*Status: (?P<status>.+?)\. Date: (?P<date>\d{4}-\d\d-\d\d)\..*?\*\n",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Record:
    file: str
    number: str
    title: str
    status: str
    date: str

    @property
    def short_status(self) -> str:
        """As the table says it; what replaced the record is in the record."""
        if "superseded" not in self.status:
            return "accepted"
        whole = re.match(r"superseded (by|on)", self.status) is not None
        return "superseded" if whole else "superseded in part"


def record_of(path: Path) -> Record:
    found = HEAD.match(path.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{path.name} does not begin with its number, title, status and date")
    if found["number"] != path.name[:4]:
        raise ValueError(f"{path.name} calls itself {found['number']}")
    return Record(path.name, found["number"], found["title"], found["status"], found["date"])


def records() -> list[Record]:
    return [record_of(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]


def decisions_table() -> str:
    rows = [
        f"| [{one.number}]({one.file}) | {one.title} | {one.short_status} | {one.date} |"
        for one in records()
    ]
    return "\n".join(["| number | decision | status | date |", "| --- | --- | --- | --- |", *rows])
