"""Refuses tables with rules that our files would break.

Penstock adds Parquet files that Spark or Arrow wrote, with the columns of the rows. It does not
compute or check anything for the table. So a table that other tools made may be written only if
nothing is asked of its writers beyond that.
"""

from collections.abc import Iterator
from typing import Any

from penstock.pipeline.failures import TableNotServedError
from penstock.pipeline.table_state import TableState

_CONSTRAINT = "delta.constraints."
# Other writers' checkpoints leave out what is older: our offsets would be gone.
_LEDGER_EXPIRES = "delta.setTransactionRetentionDuration"
# Features that ask nothing of a writer who only adds files, or nothing while they are not used;
# whether they are used is looked up in the table's properties and columns.
_HARMLESS_FEATURES = {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "columnMapping",
    "deletionVectors",
    "generatedColumns",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
_LEGACY_WRITER_VERSION_MAX = 5  # 6 asks for identity columns, which deltalake does not write
_FEATURES_BY_NAME = 7  # in this writer version features are listed by name; none is later
_READER_VERSION_MAX = 3
_COLUMN_RULES = {
    "delta.generationExpression": "is generated",
    "delta.identity.start": "is an identity column",
    "delta.identity.step": "is an identity column",
    "delta.invariants": "has an invariant",
    "CURRENT_DEFAULT": "has a default value",
}


def require_servable(name: str, table: TableState) -> None:
    """Raise if the table has a rule that we would break, and name it."""
    rule = next(_rules(table), None)
    if rule is not None:
        raise TableNotServedError(
            f"The table {name} cannot be written: {rule}.",
            remedy="Remove this from the table, or give the topic another table (lake.tables).",
        )


def _rules(table: TableState) -> Iterator[str]:
    configuration = table.configuration
    mode = configuration.get("delta.columnMapping.mode") or "none"
    if mode != "none":
        yield f"it uses column mapping ({mode})"
    if configuration.get(_LEDGER_EXPIRES):
        yield f"its ledger entries may expire ({_LEDGER_EXPIRES})"
    for key in sorted(configuration):
        if key.startswith(_CONSTRAINT):
            yield f"it has the CHECK constraint {key.removeprefix(_CONSTRAINT)}"
    for column in table.schema.fields:
        yield from _rules_of(column)
        if not column.nullable:
            yield f"its column {column.name} is NOT NULL"
    protocol = table.protocol
    version = protocol.min_writer_version
    if _LEGACY_WRITER_VERSION_MAX < version < _FEATURES_BY_NAME:
        yield f"it asks for writer version {version} (identity columns)"
    if version > _FEATURES_BY_NAME or protocol.min_reader_version > _READER_VERSION_MAX:
        yield f"it asks for reader version {protocol.min_reader_version}, writer version {version}"
    unknown = sorted(set(protocol.writer_features or ()) - _HARMLESS_FEATURES)
    if unknown:
        yield f"it asks for the writer feature {', '.join(unknown)}"


def _rules_of(column: Any) -> Iterator[str]:
    for key, rule in _COLUMN_RULES.items():
        if key in column.metadata:
            yield f"its column {column.name} {rule}"
    for inner in getattr(column.type, "fields", ()):
        yield from _rules_of(inner)
