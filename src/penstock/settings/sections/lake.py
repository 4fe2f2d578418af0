"""Settings of the lake: its tables and how they are written."""

from collections.abc import Sequence
from typing import Literal

from pydantic import ValidationInfo, field_validator, model_validator

from penstock.model.topic_partition import is_topic_name
from penstock.settings.sections.base import Section, has_secret, option, without_secrets
from penstock.settings.units import ByteSize, Duration

FILE_SIZE_MIN = 2**20


def repeated(names: Sequence[str]) -> str | None:
    """A name that is there more than once, as Delta compares them: in any case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


class TableSettings(Section):
    """How one topic is written to the lake."""

    table: str = option("", "The table's name. Empty: the topic's name.")
    transformation: str = option(
        "",
        "A function `package.module:function` from DataFrame to DataFrame, applied to all records.",
    )
    columns: list[str] = option([], "The columns of the table, in order. Empty: all columns.")
    partition_by: list[str] = option(
        [],
        "Columns that partition the table into folders; `date` comes from the record's timestamp "
        "(UTC) unless the transformation sets it.",
    )
    file_size: ByteSize = option(
        0, "The target size of this table's compacted files; 0 is `lake.file_size`."
    )
    sort_by: list[str] = option(
        [],
        "Columns by which compaction sorts the rows of each file that it makes, so that readers "
        "skip more of it; 128 MiB at a time, so that a larger file is sorted in pieces. Columns "
        "that the table lacks, lists and structs are passed over.",
    )
    rows: Literal["one", "at_most_one", "at_least_one", "any"] = option(
        "one",
        "How many rows the transformation gives for a record, for `penstock verify`: `at_most_one` "
        "when it filters, `at_least_one` when it makes several of one, `any` when it does both.",
    )

    @field_validator("table")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if value and not is_topic_name(value):
            raise ValueError(f"{value!r} is not a table name; use letters, digits, . _ -")
        return value

    @field_validator("transformation")
    @classmethod
    def _is_function(cls, value: str) -> str:
        module, colon, function = value.partition(":")
        if value and not (colon and module and function.isidentifier()):
            raise ValueError(f"{value!r} is not a function as package.module:function")
        return value

    @field_validator("file_size")
    @classmethod
    def _is_no_tiny_size(cls, value: int) -> int:
        if 0 < value < FILE_SIZE_MIN:
            raise ValueError("the smallest size is 1MiB; 0 is `lake.file_size`")
        return value

    @field_validator("columns", "partition_by", "sort_by")
    @classmethod
    def _is_named_once(cls, value: list[str]) -> list[str]:
        twice = repeated(value)
        if twice:
            raise ValueError(f"the column {twice!r} is named more than once")
        return value

    @model_validator(mode="after")
    def _partitions_are_kept(self) -> "TableSettings":
        missing = [name for name in self.partition_by if self.columns and name not in self.columns]
        if missing:
            raise ValueError(f"partition_by names {missing[0]!r}, which is not in columns")
        return self

    @model_validator(mode="after")
    def _sorts_by_what_is_there(self) -> "TableSettings":
        for name in self.sort_by:
            if self.columns and name not in self.columns:
                raise ValueError(f"sort_by names {name!r}, which is not in columns")
            if name in self.partition_by:
                raise ValueError(
                    f"sort_by names {name!r}, which partition_by names, too: it is the same in all "
                    "rows of a file"
                )
        return self


class LakeSettings(Section):
    """The lake: one Delta table for each topic, with the offsets in the same commit."""

    root: str = option(
        "lake", "The folder, or a URL such as s3://bucket/path, that holds a folder for each table."
    )
    group: str = option("penstock", "The group's name, the prefix of its offsets in the ledger.")
    tables: dict[str, TableSettings] = option(
        {},
        "For each topic: `table`, `transformation`, `columns`, `partition_by`, `file_size`, "
        "`sort_by`, `rows`.",
    )
    dead_letters: str = option(
        "",
        "The table for records that a transformation marks undecodable; `<group>_dead_letters` "
        "when empty, so that no two groups share one.",
    )
    storage_options: dict[str, str] = option(
        {}, "Object store options under deltalake's names; secrets come from AWS_... and the like."
    )
    on_offset_out_of_range: Literal["stop", "skip-and-report"] = option(
        "stop",
        "If retention removed records before they were read: stop the partition, or continue after "
        "the gap and report it.",
    )
    compression: Literal["zstd", "snappy", "lz4", "gzip", "uncompressed"] = option(
        "zstd", "The compression of Parquet files."
    )
    file_size: ByteSize = option(
        128 * 2**20,
        "The target size of compacted files; a file from two thirds of it on stays as it is.",
        ge=FILE_SIZE_MIN,
    )
    commits: Literal["auto", "alone", "together"] = option(
        "auto",
        "Who commits to a table: each consumer its own batches (`alone`); or, where more than 8 "
        "consumers write to one table, one of them those of all (`together`), over the control "
        "topic `<prefix>-commit`. Without that topic, or the right to it, each commits its own. "
        "`auto` is `together` where `lake.root` is an object store, else `alone`.",
    )
    open_tables: int = option(
        1000,
        "The most tables that a consumer keeps open. When one more is needed, the one that was "
        "used least recently is let go and read anew at its next use. An open table takes some "
        "10 kB.",
        ge=1,
    )
    compact_period: Duration = option(
        60.0,
        "How often small files are looked for and joined. For each table one consumer does it: the "
        "one that carries partition 0 of the table's first topic by name. 0s switches it off.",
        ge=0,
    )
    compact_share: float = option(
        0.1,
        "The share of a core that compaction may take in a consumer: after t seconds of processor "
        "time it rests for t divided by this.",
        gt=0,
        le=1,
    )
    quiet_after: Duration = option(
        3600.0,
        "When a folder of a partition (`date=...`), or a table without partitions, has received "
        "nothing for so long, it is joined to as few files as `lake.file_size` allows.",
        ge=60,
    )
    sweep_period: Duration = option(
        3600.0,
        "How often that consumer removes replaced files whose time is over, and files that no "
        "commit names. It lists every file of the table for that.",
        ge=60,
    )
    checkpoint_commits: int = option(
        50,
        "The number of commits between two checkpoints of a table's log. One takes a child process "
        "about a second and up to 250 MB; commits do not wait for it.",
        ge=1,
        le=10_000,
    )
    log_retention: Duration = option(
        600.0,
        "How far back in time a new table's versions can be read, and how long a reader that "
        "streams from it may be away. It costs a file of about 1 kB for each commit: at one a "
        "second 600 for 10m, 86,400 for 1d.",
        ge=60,
    )
    removed_file_retention: Duration = option(
        86_400.0,
        "How long files replaced by compaction stay for readers that began before. They take about "
        "twice the space of the records that arrive in this time.",
    )

    @field_validator("storage_options")
    @classmethod
    def _has_no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        return without_secrets(value)

    @field_validator("root")
    @classmethod
    def _means_itself(cls, value: str) -> str:
        if not value.strip():
            raise ValueError(
                "it is empty; name a folder, which is made where it does not exist, or a URL such "
                "as s3://bucket/path"
            )
        if has_secret(value):
            raise ValueError(
                "it has a secret, such as a password before the host, and what stands here is "
                "printed; "
                "set them in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, ...)"
            )
        if "%" in value:
            raise ValueError("a percent sign is not allowed: readers decode it differently")
        return value

    @field_validator("tables")
    @classmethod
    def _topics_of_one_table_agree(
        cls, value: dict[str, TableSettings]
    ) -> dict[str, TableSettings]:
        """A table has one partitioning, and Delta knows a column by its name in any case."""
        by_table: dict[str, str] = {}
        for topic, own in sorted(value.items()):
            table = own.table or topic
            first = by_table.setdefault(table, topic)
            other = value[first]
            both = f"topics {first} and {topic} both go to the table {table}, but"
            for name in ("partition_by", "file_size", "sort_by"):
                mine, its = getattr(own, name), getattr(other, name)
                if mine != its:
                    raise ValueError(
                        f"{both} {first} has {name} {its} and {topic} has {mine}; give both the "
                        "same, or one of them another table"
                    )
            names = {name.lower(): name for name in other.columns}
            for name in own.columns:
                if names.get(name.lower(), name) != name:
                    raise ValueError(
                        f"{both} {first} has the column {names[name.lower()]!r} and {topic} has "
                        f"{name!r}; write it the same in both"
                    )
        return value

    @field_validator("group", "dead_letters")
    @classmethod
    def _is_name(cls, value: str, info: ValidationInfo) -> str:
        may_be_empty = info.field_name == "dead_letters"
        if not is_topic_name(value) and not (may_be_empty and not value):
            raise ValueError(f"{value!r} cannot be a name here; use letters, digits, . _ -")
        return value

    @property
    def commits_together(self) -> bool:
        """Whether one consumer may commit for many; object stores take few commits a second."""
        if self.commits == "auto":
            scheme, separator, _ = self.root.partition("://")
            return bool(separator) and scheme != "file"
        return self.commits == "together"

    @property
    def dead_letter_table(self) -> str:
        return self.dead_letters or f"{self.group}_dead_letters"

    def table_of(self, topic: str) -> TableSettings:
        """The settings of a topic's table, with its name filled in."""
        given = self.tables.get(topic, TableSettings())
        return given if given.table else given.model_copy(update={"table": topic})

    def file_size_of(self, table: str) -> int:
        """The target size of a table's files."""
        return self._of_table(table).file_size or self.file_size

    def sort_by(self, table: str) -> tuple[str, ...]:
        """The columns by which a table's compacted files are sorted."""
        return tuple(self._of_table(table).sort_by)

    def _of_table(self, table: str) -> TableSettings:
        """What the topics of a table agree on."""
        found = (own for topic, own in self.tables.items() if (own.table or topic) == table)
        return next(found, TableSettings())
