"""Makes a Delta table for the first rows, and adds the columns that later rows bring."""

import json
from collections.abc import Sequence

from deltalake import DeltaTable, Schema

from penstock.pipeline.failures import SchemaChangedError
from penstock.pipeline.storage import TableStorage
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


def fit_columns(name: str, table: DeltaTable, schema: Schema, partition_by: Sequence[str]) -> None:
    """Add the columns that the table lacks; raise if the rows do not fit the others."""
    there = list(table.metadata().partition_columns)
    if there != list(partition_by):
        raise SchemaChangedError(
            f"The table {name} is partitioned by {there}, the settings say {list(partition_by)}.",
            remedy="Give the topic another table, or set partition_by as it was.",
        )
    known = {one.name: one for one in table.schema().fields}
    for one in schema.fields:
        if one.name in known and known[one.name].type != one.type:
            raise SchemaChangedError(
                f"The table {name} has {one.name} as {known[one.name].type}, the records "
                f"now have {one.type}.",
                remedy="Cast it in the transformation, or give the topic another table.",
            )
    new = [one for one in schema.fields if one.name not in known]
    if new:
        table.alter.add_columns(new)
        table.update_incremental()


def nullable_schema(schema_json: str) -> Schema:
    """Spark's schema as Delta's, which has the same JSON; every column may be null."""
    content = json.loads(schema_json)
    for one in content["fields"]:
        one["nullable"] = True
    return Schema.from_json(json.dumps(content))


def _interval(seconds: float) -> str:
    return f"interval {round(seconds)} seconds"
