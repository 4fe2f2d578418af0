"""Finds files that no commit will ever name, without a clock and without a lock.

A file's path contains the ledger entry its batch was planned from (see `batch_folder`). Entries
only grow, and a commit requires the entry it was planned from. So once the entry has moved, the
batch has either committed or never will, and every file of it that the log does not name can be
removed. A writer that is paused before its commit still has its entry, and keeps its files: going
by age, or by a file lock that another node may not see, would delete files that are committed
later, and the table could not be read any more.
"""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from penstock.pipeline.batch import Writer
from penstock.pipeline.table_reading import TableReading

COMPACTION = "compaction"
_WRITER = re.compile(r"\d+-\d+")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a data file's path says."""

    group: str
    writer: Writer | None
    application_id: str
    expected: int | None

    @classmethod
    def of(cls, path: str) -> "Provenance | None":
        """None for a path that no writer of ours makes: such a file is never touched."""
        parts = path.split("/")
        if len(parts) < 5 or parts[0] != "data":
            return None
        _, group, writer_text, batch = parts[:4]
        reference_range = batch.split(".")
        consumer, _, incarnation = writer_text.partition("-")
        is_writer = consumer.isdigit() and incarnation.isdigit()
        if len(reference_range) != 4 or not (is_writer or writer_text == COMPACTION):
            return None
        _, topic_id, partition, expected = reference_range
        if not partition.isdigit() or not (expected == "new" or expected.isdigit()):
            return None
        return cls(
            group,
            Writer(int(consumer), int(incarnation)) if is_writer else None,
            f"{group}/{topic_id}/{partition}",
            None if expected == "new" else int(expected),
        )

    def is_over(self, ledger: Mapping[str, int | None]) -> bool:
        """Whether the batch has committed or never will."""
        return ledger.get(self.application_id) != self.expected


def orphans_among(
    paths: Iterable[str],
    *,
    known: Container[str],
    ledger: Mapping[str, int | None],
) -> list[str]:
    """The files to remove. `known` are those the log names, also as removed. Pure."""
    orphans = []
    for path in sorted(paths):
        origin = Provenance.of(path)
        if path in known or origin is None:
            continue
        if origin.is_over(ledger):
            orphans.append(path)
    return orphans


@dataclass(frozen=True, slots=True)
class FoundOrphans:
    """Data files of a group that no commit will ever name."""

    orphans: tuple[str, ...] = ()


def find_orphans(
    table: TableReading, group: str, *, of_consumer: int | None = None
) -> FoundOrphans:
    """Files are listed before the log is read: a batch that commits in between is in the log.

    It is also read before they are listed, so that only files are held that it did not name then.
    """
    folders = _folders(table, group, of_consumer)
    if not folders:
        return FoundOrphans()
    named = table.snapshot([]).known_files
    paths = tuple(
        file.path
        for folder in folders
        for file in table.storage.each_file_below(folder)
        if file.path not in named
    )
    del named  # it is as large as the next one
    if not paths:
        return FoundOrphans()
    origins = [origin for path in paths if (origin := Provenance.of(path)) is not None]
    snapshot = table.snapshot({origin.application_id for origin in origins})
    orphans = orphans_among(paths, known=snapshot.known_files, ledger=snapshot.ledger)
    return FoundOrphans(tuple(orphans))


def remove_orphans(table: TableReading, group: str, *, of_consumer: int | None = None) -> int:
    """Remove a table's orphans, or only those of one consumer; how many there were."""
    found = find_orphans(table, group, of_consumer=of_consumer)
    table.storage.delete_files(found.orphans)
    # A batch's folder is its own: when none of its files is left, no other writer misses it.
    for folder in sorted({batch_of(path) for path in found.orphans}):
        if next(table.storage.each_file_below(folder), None) is None:
            table.storage.delete_folder(folder)
    return len(found.orphans)


def _folders(table: TableReading, group: str, of_consumer: int | None) -> list[str]:
    """Where files are looked for: a table of many consumers has many files of others."""
    root = f"data/{group}"
    if of_consumer is None:
        return [root]
    return [
        f"{root}/{name}"
        for name in table.storage.folder_names(root)
        if _WRITER.fullmatch(name) and int(name.partition("-")[0]) == of_consumer
    ]


def batch_of(path: str) -> str:
    """The folder of the batch to which a data file belongs."""
    return "/".join(path.split("/")[:4])
