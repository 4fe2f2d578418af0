"""Makes the logs of Delta tables as other tools leave them, and asks deltalake what they say."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_log import TableLog
from penstock.pipeline.table_state import TableProtocol, TableState, features
from penstock.settings.sections import LakeSettings

NAMES = ("g/a/0", "g/a/1", "g/a/2")
# What another tool's table would have: its own clean-up removes at once what it may.
CLEANED_AT_ONCE = {"delta.logRetentionDuration": "interval 0 seconds"}


def make_table(place: Path, **configuration: str) -> None:
    """A table with one column and no rows; checkpoints are made only when a test asks for them."""
    DeltaTable.create(
        str(place),
        schema=pa.schema([("n", pa.int64())]),
        configuration={
            "delta.checkpointInterval": "1000000",
            "delta.enableExpiredLogCleanup": "false",
            **CLEANED_AT_ONCE,
            **configuration,
        },
    )


def move(place: Path, entries: dict[str, int], rows: int = 1) -> None:
    """A commit by another tool that adds rows and moves ledger entries."""
    moved = [Transaction(name, at) for name, at in entries.items()]
    write_deltalake(
        str(place),
        pa.table({"n": pa.array(range(rows), pa.int64())}),
        mode="append",
        schema_mode="merge",
        commit_properties=CommitProperties(app_transactions=moved),
    )


def log_of(place: Path) -> TableLog:
    return TableLog(TableStorage(LakeSettings(root=str(place.parent)), place.name))


def described(state: TableState | None, names: Iterable[str] = NAMES) -> dict[str, Any]:
    """A state as `truth` gives it."""
    if state is None:
        return {}
    return {
        "version": state.version,
        "id": state.metadata.table_id,
        "columns": json.loads(state.schema.to_json()),
        "partitioned": list(state.metadata.partition_columns),
        "properties": dict(state.configuration),
        "protocol": state.protocol,
        "ledger": {name: state.transactions.get(name) for name in names},
    }


def truth(place: Path, names: Iterable[str] = NAMES) -> dict[str, Any]:
    """What deltalake says of the newest version, opened anew."""
    table = DeltaTable(str(place))
    metadata, protocol = table.metadata(), table.protocol()
    return {
        "version": table.version(),
        "id": metadata.id,
        "columns": json.loads(table.schema().to_json()),
        "partitioned": metadata.partition_columns,
        "properties": metadata.configuration,
        "protocol": TableProtocol(
            protocol.min_reader_version,
            protocol.min_writer_version,
            features(protocol.reader_features),
            features(protocol.writer_features),
        ),
        "ledger": {name: table.transaction_version(name) for name in names},
    }


def checkpoint(place: Path) -> int:
    """A checkpoint of the newest version."""
    table = DeltaTable(str(place))
    table.create_checkpoint()
    return int(table.version())


def clean_up(place: Path) -> None:
    """Remove every entry that a checkpoint includes, and older checkpoints."""
    DeltaTable(str(place)).cleanup_metadata()


def split_checkpoint(place: Path, version: int, parts: int) -> None:
    """Make one checkpoint one in several parts, as delta-spark writes it for large tables."""
    log = place / "_delta_log"
    whole = log / f"{version:020d}.checkpoint.parquet"
    if not whole.exists():
        return  # it is in parts already
    rows = pyarrow.parquet.read_table(whole)
    each = -(-len(rows) // parts)
    for number in range(parts):
        name = f"{version:020d}.checkpoint.{number + 1:010d}.{parts:010d}.parquet"
        pyarrow.parquet.write_table(rows.slice(number * each, each), log / name)
    whole.unlink()
    hint = {"version": version, "size": len(rows), "parts": parts}
    (log / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")


def replace_table(place: Path, commits: int) -> None:
    """Remove the table, and make another one with so many commits after the first."""
    shutil.rmtree(place)
    make_table(place)
    for number in range(commits):
        move(place, {NAMES[2]: 1000 + number})
