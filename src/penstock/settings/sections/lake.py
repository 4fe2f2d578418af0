"""Where records land: the lake's tables, and what each topic's table looks like."""

from typing import Literal

from pydantic import ValidationInfo, field_validator, model_validator

from penstock.model.topic_partition import is_topic_name
from penstock.settings.sections.base import Section, option
from penstock.settings.units import ByteSize, Duration


class TableSettings(Section):
    """One topic's way into the lake."""

    table: str = option("", "The table's name; the topic's own name when empty.")
    transformation: str = option(
        "",
        "The function `package.module:function` (DataFrame to DataFrame) all records go through.",
    )
    columns: list[str] = option([], "The columns the table keeps, in order; all when empty.")
    partition_by: list[str] = option(
        [],
        "Columns that divide the table into folders; `date` is made from the record's time (UTC) "
        "when the transformation gives none.",
    )

    @field_validator("table")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if value and not is_topic_name(value):
            raise ValueError(f"{value!r} cannot be a table's name; use letters, digits, . _ -")
        return value

    @field_validator("transformation")
    @classmethod
    def _is_function(cls, value: str) -> str:
        module, colon, function = value.partition(":")
        if value and not (colon and module and function.isidentifier()):
            raise ValueError(f"{value!r} does not name a function as package.module:function")
        return value

    @model_validator(mode="after")
    def _partitions_are_kept(self) -> "TableSettings":
        missing = [name for name in self.partition_by if self.columns and name not in self.columns]
        if missing:
            raise ValueError(f"partition_by names {missing[0]!r}, which columns leaves out")
        return self


class LakeSettings(Section):
    """Where records land: one Delta table a topic, with the offsets in the same commit."""

    root: str = option(
        "lake", "The folder (or s3://bucket/path and the like) in which every table has its own."
    )
    group: str = option(
        "penstock", "The group's name: it begins the name of every offset in the ledger."
    )
    tables: dict[str, TableSettings] = option(
        {}, "Per topic: `table`, `transformation`, `columns`, `partition_by`."
    )
    dead_letters: str = option(
        "",
        "The table for records that a transformation marks undecodable; `<group>_dead_letters` "
        "when empty, so that no two groups share one.",
    )
    storage_options: dict[str, str] = option(
        {}, "Options for an object store, as deltalake names them; secrets come from AWS_... etc."
    )
    on_offset_out_of_range: Literal["stop", "skip-and-report"] = option(
        "stop",
        "When retention removed records before they were carried: stop the partition, or go on "
        "behind the hole and report it.",
    )
    compression: Literal["zstd", "snappy", "lz4", "gzip", "uncompressed"] = option(
        "zstd", "How Parquet files are compressed."
    )
    file_size: ByteSize = option(
        128 * 2**20, "How large compaction makes a file; larger ones are left alone.", ge=2**20
    )
    compact_period: Duration = option(
        0.0, "How often a consumer compacts the tables it writes; 0s for never.", ge=0
    )
    checkpoint_commits: int = option(
        50, "A table's log is summed up in a checkpoint every so many commits.", ge=1, le=10_000
    )
    log_retention: Duration = option(
        86_400.0, "How long a table's log keeps commits that a checkpoint covers.", ge=60
    )
    removed_file_retention: Duration = option(
        7 * 86_400.0, "How long files that compaction replaced stay for readers of old versions."
    )

    @field_validator("root")
    @classmethod
    def _means_itself(cls, value: str) -> str:
        if "%" in value:
            raise ValueError("a percent sign in a path means different things to different readers")
        return value

    @field_validator("group", "dead_letters")
    @classmethod
    def _is_name(cls, value: str, info: ValidationInfo) -> str:
        may_be_empty = info.field_name == "dead_letters"
        if not is_topic_name(value) and not (may_be_empty and not value):
            raise ValueError(f"{value!r} cannot be a name here; use letters, digits, . _ -")
        return value

    @property
    def dead_letter_table(self) -> str:
        return self.dead_letters or f"{self.group}_dead_letters"

    def table_of(self, topic: str) -> TableSettings:
        """The settings of a topic's table, with its name filled in."""
        given = self.tables.get(topic, TableSettings())
        return given if given.table else given.model_copy(update={"table": topic})
