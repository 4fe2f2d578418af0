"""Makes a Delta table for the first rows, adds new columns, and checks that rows still fit."""

import json
from collections.abc import Sequence
from typing import Any

from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from penstock.pipeline.failures import SchemaChangedError
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_rules import require_servable
from penstock.pipeline.table_state import TableProtocol, TableState
from penstock.settings.sections import LakeSettings


def create_table(
    lake: LakeSettings, storage: TableStorage, schema: Schema, partition_by: Sequence[str]
) -> None:
    """Make the table, unless another writer just did."""
    DeltaTable.create(
        storage.uri,
        schema=schema,
        mode="ignore",
        partition_by=list(partition_by) or None,
        configuration={
            "delta.checkpointInterval": str(lake.checkpoint_commits),
            "delta.logRetentionDuration": _interval(lake.log_retention),
            "delta.deletedFileRetentionDuration": _interval(lake.removed_file_retention),
            "delta.enableExpiredLogCleanup": "true",
        },
        storage_options=storage.options or None,
    )


class ColumnsToWrite:
    """The columns of all rows that this process writes to a table, and whether they still fit.

    Another tool may replace a table's columns at any time. To look is cheap: rows and rules are
    checked only when what the log says about the table has changed.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # By their JSON and the columns by which they are partitioned: topics may share a table.
        self._opened: dict[tuple[str, tuple[str, ...]], Schema] = {}
        self._fit: _Description | None = None

    def is_opened(self, table: TableState, schema_json: str, partition_by: Sequence[str]) -> bool:
        """Whether these rows fit, and nothing has changed since they did."""
        is_known = (schema_json, tuple(partition_by)) in self._opened
        return is_known and _description(table) == self._fit

    def opened(self, schema_json: str, partition_by: Sequence[str]) -> None:
        """From now on rows with these columns are written: the table has them all."""
        self._opened[schema_json, tuple(partition_by)] = nullable_schema(schema_json)

    def to_add(
        self, table: TableState, schema_json: str, partition_by: Sequence[str]
    ) -> list[Field]:
        """The columns that the table lacks. Raise if the rows do not fit the others."""
        require_servable(self._name, table)
        return _missing(self._name, table, nullable_schema(schema_json), partition_by)

    def require_fit(self, table: TableState) -> None:
        """Raise if rows that were opened no longer fit, or the table has a new rule."""
        description = _description(table)
        if description == self._fit:
            return
        require_servable(self._name, table)
        for (_, partition_by), schema in self._opened.items():
            missing = _missing(self._name, table, schema, partition_by)
            if missing:
                raise SchemaChangedError(
                    f"The table {self._name} no longer has the column {missing[0].name}.",
                    remedy="The next batch adds it again; keep it out with the transformation.",
                )
        self._fit = description


# Columns, partitioning, properties, and what is asked of readers and writers.
_Description = tuple[str, tuple[str, ...], tuple[tuple[str, str], ...], TableProtocol]


def _description(table: TableState) -> _Description:
    return (
        table.metadata.schema_json,
        table.metadata.partition_columns,
        tuple(sorted(table.configuration.items())),
        table.protocol,
    )


def _missing(
    name: str, table: TableState, schema: Schema, partition_by: Sequence[str]
) -> list[Field]:
    """The columns that the table lacks. Raise if the rows do not fit the others."""
    there = list(table.metadata.partition_columns)
    if there != list(partition_by):
        raise SchemaChangedError(
            f"The table {name} is partitioned by {there}, the settings say {list(partition_by)}.",
            remedy="Give the topic another table, or set partition_by as it was.",
        )
    known = {one.name: one for one in table.schema.fields}
    for one in schema.fields:
        if one.name in known and known[one.name].type != one.type:
            raise SchemaChangedError(
                f"The table {name} has {one.name} as {_type_name(known[one.name].type)}, the "
                f"records now have {_type_name(one.type)}.",
                remedy="Cast it in the transformation, or give the topic another table.",
            )
    return [one for one in schema.fields if one.name not in known]


def _type_name(kind: Any) -> str:
    """As people write it: `long`, not `PrimitiveType("long")`."""
    return kind.type if isinstance(kind, PrimitiveType) else str(kind)


def nullable_schema(schema_json: str) -> Schema:
    """Spark's schema as Delta's, which has the same JSON; every column may be null."""
    content = json.loads(schema_json)
    for one in content["fields"]:
        one["nullable"] = True
    return Schema.from_json(json.dumps(content))


def _interval(seconds: float) -> str:
    return f"interval {round(seconds)} seconds"
