"""The health of the lake's tables: files, their sizes, and how long a reader's way through the log.

Small files make reading slow, and so does a log of many entries after its newest checkpoint.
"""

from dataclasses import dataclass

from penstock.model.sentences import counted
from penstock.page.core.view import Json

# More than this many small files, or entries since the newest checkpoint, are named as a problem.
SMALL_FILES_MAX = 200
ENTRIES_MAX = 300
# A file is small when it is below this share of the size to which compaction joins files.
SMALL_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class LogLength:
    """What the folder of a table's log holds."""

    entries: int
    # None where there is no checkpoint.
    oldest_checkpoint_version: int | None = None
    oldest_checkpoint_unix_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CompactionDone:
    """What compaction has done to a table since it was made, and what it cost."""

    joins: int
    files: int
    rewritten_bytes: int
    processor_ms: int
    last_unix_ms: int

    def answer(self) -> Json:
        return {
            "joins": self.joins,
            "files_replaced": self.files,
            "rewritten_bytes": self.rewritten_bytes,
            "processor_s": self.processor_ms / 1000,
            "last_unix_ms": self.last_unix_ms,
        }


@dataclass(frozen=True, slots=True)
class TableHealth:
    table: str
    version: int
    file_sizes: tuple[int, ...]
    # None where the log does not say it for every file.
    records: int | None
    newest_file_unix_ms: int | None
    # None where the log has no checkpoint yet.
    checkpoint_version: int | None
    file_size_target_bytes: int
    log: LogLength = LogLength(0)
    # None for a table that was never compacted.
    compaction: CompactionDone | None = None
    # Files that no commit names and none will; None if they were not looked for.
    orphans: int | None = None

    @property
    def entries_since_checkpoint(self) -> int:
        return self.version - (-1 if self.checkpoint_version is None else self.checkpoint_version)

    @property
    def small_files(self) -> int:
        limit = SMALL_SHARE * self.file_size_target_bytes
        return sum(size < limit for size in self.file_sizes)

    def problems(self) -> list[str]:
        found = []
        if self.small_files > SMALL_FILES_MAX:
            found.append(f"{counted(self.small_files, 'small file')}: run `penstock lake compact`")
        if self.entries_since_checkpoint > ENTRIES_MAX:
            entries = counted(self.entries_since_checkpoint, "log entry").replace(
                "entrys", "entries"
            )
            found.append(f"{entries} since the newest checkpoint: run `penstock lake compact`")
        return found

    def answer(self) -> Json:
        total = sum(self.file_sizes)
        return {
            "table": self.table,
            "version": self.version,
            "files": len(self.file_sizes),
            "bytes": total,
            "records": self.records,
            "mean_file_bytes": total / len(self.file_sizes) if self.file_sizes else None,
            "small_files": self.small_files,
            "file_size_target_bytes": self.file_size_target_bytes,
            "entries_since_checkpoint": self.entries_since_checkpoint,
            "log_entries": self.log.entries,
            "oldest_checkpoint_version": self.log.oldest_checkpoint_version,
            "oldest_checkpoint_unix_ms": self.log.oldest_checkpoint_unix_ms,
            "compaction": None if self.compaction is None else self.compaction.answer(),
            "orphans": self.orphans,
            "newest_file_unix_ms": self.newest_file_unix_ms,
            "is_healthy": not self.problems(),
            "problems": self.problems(),
        }


@dataclass(frozen=True, slots=True)
class TablesRead:
    """What a look at the lake found; `unreachable` says why there is nothing."""

    read_unix_ms: int
    tables: tuple[TableHealth, ...] = ()
    unreachable: str | None = None

    def answer(self) -> Json:
        return {
            "error": False,
            "message": self.unreachable or counted(len(self.tables), "table"),
            "read_unix_ms": self.read_unix_ms,
            "unreachable": self.unreachable,
            "tables": [one.answer() for one in self.tables],
        }
