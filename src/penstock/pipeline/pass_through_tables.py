"""Which tables take the pass-through way, by the settings alone. Pure."""

from collections.abc import Mapping, Sequence

from penstock.pipeline.batch import PlannedRange
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, TableSettings
from penstock.spark_worker.record_columns import DATE_COLUMN, RECORD_COLUMNS, TABLE_COLUMNS


def pass_through_tables(
    lake: LakeSettings, by_table: Mapping[str, Sequence[PlannedRange]]
) -> list[str]:
    """The tables whose records pass through, each from one topic."""
    return [
        name
        for name in sorted(by_table)
        if len({(one.partition.topic, one.topic_id) for one in by_table[name]}) == 1
        and _passes_through(lake.table_of(by_table[name][0].partition.topic))
    ]


def all_pass_through(settings: Settings) -> bool:
    """Whether no topic that the settings name needs more of Spark than its Python workers."""
    lake = settings.lake
    tables = [lake.table_of(topic) for topic in lake.tables]
    is_shared = len({table.table for table in tables}) < len(tables)
    return settings.spark.pass_through and not is_shared and all(map(_passes_through, tables))


def _passes_through(table: TableSettings) -> bool:
    is_known = set(table.columns) <= set(TABLE_COLUMNS)
    return not table.transformation and is_known and table.partition_by in ([], [DATE_COLUMN])


def columns_of(table: TableSettings) -> list[str]:
    """The table's columns in order, the same as through a DataFrame."""
    dated = [DATE_COLUMN] if table.partition_by else []
    return list(table.columns) or [*RECORD_COLUMNS, *dated]
