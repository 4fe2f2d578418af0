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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.pipeline.table_files import ActiveFile

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


def joins_of(files: Sequence[ActiveFile], rules: JoinRules) -> list[Join]:
    """What is to be joined now. Only files of one partition folder and one topic are."""
    joins: list[Join] = []
    for everything, small in _folders(files, rules):
        if _is_quiet(everything, rules):
            joins += _finishing(small, rules)
        else:
            joins += _ongoing(small, rules)
    return joins


def next_finish_ms(files: Sequence[ActiveFile], rules: JoinRules) -> int | None:
    """When the next folder becomes quiet in which there is something to join; None if none."""
    return min(
        (
            _newest_ms(everything) + rules.quiet_ms
            for everything, small in _folders(files, rules)
            if len(small) >= FILES_WORTH_IT and not _is_quiet(everything, rules)
        ),
        default=None,
    )


def _folders(
    files: Sequence[ActiveFile], rules: JoinRules
) -> Iterator[tuple[list[ActiveFile], list[ActiveFile]]]:
    """For each folder and topic: its files, and those that are not large enough, oldest first."""
    by_kind: dict[tuple[str, ...], list[ActiveFile]] = {}
    for file in sorted(files, key=lambda file: (file.modified_at_ms, file.path)):
        by_kind.setdefault(_kind(file), []).append(file)
    for _, everything in sorted(by_kind.items(), key=lambda item: item[0]):
        yield everything, [file for file in everything if not rules.is_large(file.size_bytes)]


def _is_quiet(files: Sequence[ActiveFile], rules: JoinRules) -> bool:
    return rules.finishes_all or rules.now_ms - _newest_ms(files) >= rules.quiet_ms


def _newest_ms(files: Sequence[ActiveFile]) -> int:
    return max(file.modified_at_ms for file in files)


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


def _kind(file: ActiveFile) -> tuple[str, ...]:
    values = sorted(file.partition_values.items())
    return topic_folder(file.path), *(f"{name}={value!r}" for name, value in values)


def topic_folder(path: str) -> str:
    """The part of a path that says of which topic its rows are; kept when files are joined."""
    parts = path.split("/")
    return next((part for part in parts if part.startswith(("topic-", "mixed"))), "mixed")


def is_finished(path: str) -> bool:
    """Whether the file was made when its folder was quiet, as its name says."""
    return path.rsplit("/", 1)[-1].startswith(f"{FINISHED}-")
