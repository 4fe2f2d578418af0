"""Which files of a table become one, and when. Pure.

Files of one partition folder and one topic are joined in steps, so that no large file is rewritten
for every small one that arrives:

    soon      files that together are 16 times as large as the largest of them become one
    in time   as soon as they make a file of the wanted size, the oldest become that file
    quiet     a folder that received nothing for a while gets as few files as the size allows

With every step a byte's file becomes 16 times as large or is done, so a byte is rewritten at most
log16(wanted size / size at first) times and twice more. A folder that is finished is joined again
only when as much has come as was left small.

A file from two thirds of the wanted size on is large enough: rewriting it would gain little. Any
two files that are smaller may be joined, up to four thirds.
"""

import itertools
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.pipeline.table_files import ActiveFile

Kind: TypeAlias = tuple[str, ...]
GROWTH = 16
_LARGE_ENOUGH = 2 / 3
FILES_WORTH_IT = 2
FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class JoinRules:
    """By what is decided which files are joined now."""

    file_size: int
    now_ms: int
    quiet_ms: int
    # Whether all folders count as quiet, whatever was joined in them before.
    finishes_all: bool = False

    def is_large(self, size_bytes: int) -> bool:
        return size_bytes >= _LARGE_ENOUGH * self.file_size


@dataclass(frozen=True, slots=True)
class Join:
    """Files that become one. `is_last`: what they become is not meant to be joined again."""

    files: tuple[ActiveFile, ...]
    is_finishing: bool = False
    is_last: bool = False

    @property
    def size_bytes(self) -> int:
        return _total(self.files)


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of one partition folder and one topic, as far as the plan needs them."""

    newest_ms: int
    # Those that are not large enough, oldest first.
    small: Sequence[ActiveFile]

    def is_quiet(self, rules: JoinRules) -> bool:
        return rules.finishes_all or rules.now_ms - self.newest_ms >= rules.quiet_ms


class FoundFolders:
    """Collects a table's files one by one, and holds so many of the small ones at most.

    When there are more, only some folders are held, chosen by chance (the time is in it, so at the
    next look they are others), or of the last folder only the files that came first.
    """

    def __init__(self, rules: JoinRules, small_max: int) -> None:
        self._rules = rules
        self._small_max = small_max
        self._newest_ms: dict[Kind, int] = {}
        self._small: dict[Kind, list[ActiveFile]] = {}
        self._held = 0
        self._numbers_below = 2**32
        # Whether all small files are held.
        self.is_whole = True

    def saw(self, kind: Kind, modified_at_ms: int) -> None:
        """A file, small or large, that came then."""
        self._newest_ms[kind] = max(modified_at_ms, self._newest_ms.get(kind, modified_at_ms))

    def add_small(self, kind: Kind, file: ActiveFile) -> None:
        if self._number(kind) >= self._numbers_below:
            self.is_whole = False
            return
        self._small.setdefault(kind, []).append(file)
        self._held += 1
        while self._held > self._small_max:
            self._hold_less()

    def folders(self) -> list[Folder]:
        return [
            Folder(
                self._newest_ms[kind],
                sorted(files, key=lambda file: (file.modified_at_ms, file.path)),
            )
            for kind, files in sorted(self._small.items(), key=lambda item: item[0])
        ]

    def _hold_less(self) -> None:
        self.is_whole = False
        numbers = {kind: self._number(kind) for kind in self._small}
        if len({*numbers.values()}) == 1:
            max(self._small.values(), key=len).pop()
            self._held -= 1
            return
        middle = sorted(numbers.values())[len(numbers) // 2]
        self._numbers_below = max(1 + min(numbers.values()), middle)
        for kind, number in numbers.items():
            if number >= self._numbers_below:
                self._held -= len(self._small.pop(kind))

    def _number(self, kind: Kind) -> int:
        return zlib.crc32(f"{self._rules.now_ms}{kind}".encode(errors="surrogatepass"))


def joins_of(files: Iterable[ActiveFile], rules: JoinRules) -> list[Join]:
    """What is to be joined now. Only files of one partition folder and one topic are."""
    return joins_in(folders_of(files, rules), rules)


def joins_in(folders: Iterable[Folder], rules: JoinRules) -> list[Join]:
    joins: list[Join] = []
    for folder in folders:
        if folder.is_quiet(rules):
            joins += _finishing(folder.small, rules)
        else:
            joins += _ongoing(folder.small, rules)
    return joins


def next_finish_ms(folders: Iterable[Folder], rules: JoinRules) -> int | None:
    """When the next folder becomes quiet in which there is something to join; None if none."""
    return min(
        (
            folder.newest_ms + rules.quiet_ms
            for folder in folders
            if len(folder.small) >= FILES_WORTH_IT and not folder.is_quiet(rules)
        ),
        default=None,
    )


def folders_of(files: Iterable[ActiveFile], rules: JoinRules) -> list[Folder]:
    """All folders and topics in which there are small files."""
    found = FoundFolders(rules, sys.maxsize)
    for file in files:
        kind = kind_of(file.path, file.partition_values)
        found.saw(kind, file.modified_at_ms)
        if not rules.is_large(file.size_bytes):
            found.add_small(kind, file)
    return found.folders()


def _finishing(small: Sequence[ActiveFile], rules: JoinRules) -> list[Join]:
    finished = [file for file in small if is_finished(file.path)]
    others = [file for file in small if not is_finished(file.path)]
    if not rules.finishes_all and finished and _total(others) < _total(finished):
        return _ongoing(others, rules)
    return [
        Join(tuple(some), is_finishing=True, is_last=True)
        for some in _filled(small, rules)
        if len(some) >= FILES_WORTH_IT
    ]


def _ongoing(small: Sequence[ActiveFile], rules: JoinRules) -> list[Join]:
    if not small:
        return []
    *full, rest = _filled(small, rules)
    joins = [Join(tuple(some), is_last=True) for some in full]
    grown = _grown(rest)
    if grown:
        joins.append(Join(grown, is_last=rules.is_large(_total(grown))))
    return joins


def _filled(small: Sequence[ActiveFile], rules: JoinRules) -> list[list[ActiveFile]]:
    """In their order into files of the wanted size. All but the last are large enough."""
    bins: list[list[ActiveFile]] = [[]]
    total = 0
    for file in small:
        if rules.is_large(total) and total + file.size_bytes > rules.file_size:
            bins.append([])
            total = 0
        bins[-1].append(file)
        total += file.size_bytes
    return bins


def _grown(files: Sequence[ActiveFile]) -> tuple[ActiveFile, ...]:
    """As many of the smallest as together are `GROWTH` times as large as each of them."""
    by_size = sorted(files, key=lambda file: (file.size_bytes, file.path))
    totals = itertools.accumulate(file.size_bytes for file in by_size)
    count = 0
    for number, (file, total) in enumerate(zip(by_size, totals, strict=True), start=1):
        if number >= FILES_WORTH_IT and total >= GROWTH * file.size_bytes:
            count = number
    return tuple(sorted(by_size[:count], key=lambda file: (file.modified_at_ms, file.path)))


def _total(files: Sequence[ActiveFile]) -> int:
    return sum(file.size_bytes for file in files)


def kind_of(path: str, partition_values: Mapping[str, str | None]) -> Kind:
    """What only files have in common that may be joined."""
    values = sorted(partition_values.items())
    return topic_folder(path), *(f"{name}={value!r}" for name, value in values)


def topic_folder(path: str) -> str:
    """The part of a path that says of which topic its rows are; kept when files are joined."""
    parts = path.split("/")
    return next((part for part in parts if part.startswith(("topic-", "mixed"))), "mixed")


def is_finished(path: str) -> bool:
    """Whether the file was made when its folder was quiet, as its name says."""
    return path.rsplit("/", 1)[-1].startswith(f"{FINISHED}-")
