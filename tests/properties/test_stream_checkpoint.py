"""A checkpoint that is made piece by piece says what deltalake's says, whatever happened before."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.lake.log_histories import NAMES, checkpoint, clean_up, split_checkpoint, truth
from penstock.pipeline import stream_checkpoint
from penstock.pipeline.storage import TableStorage
from penstock.settings.sections import LakeSettings

Step: TypeAlias = Callable[[Path, int], object]
DAYS = ("2026-11-19", "50 % of ü/ä", None)


def _write(place: Path, number: int) -> None:
    rows = {"n": [number, number + 1], "day": pa.array(DAYS, pa.string()).take([number % 3, 2])}
    write_deltalake(
        str(place),
        pa.table(rows),
        mode="append",
        schema_mode="merge",
        partition_by=["day"],
        commit_properties=CommitProperties(
            app_transactions=[Transaction(NAMES[number % 3], number)]
        ),
    )


def _storage(place: Path) -> TableStorage:
    return TableStorage(LakeSettings(root=str(place.parent)), place.name)


def _in_pieces(place: Path) -> None:
    stream_checkpoint.make_next_checkpoint(_storage(place), time.time_ns() // 1_000_000)


STEPS: dict[str, Step] = {
    "rows": _write,
    "more rows": _write,
    "rows deleted": lambda place, number: DeltaTable(str(place)).delete(f"n < {number - 1}"),
    "files joined": lambda place, _: DeltaTable(str(place)).optimize.compact(),
    "a vacuum": lambda place, _: DeltaTable(str(place)).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    ),
    "a property": lambda place, number: DeltaTable(str(place)).alter.set_table_properties(
        {"delta.targetFileSize": str(number)}
    ),
    "their checkpoint": lambda place, _: checkpoint(place),
    "theirs in parts": lambda place, _: split_checkpoint(place, checkpoint(place), 2),
    "ours": lambda place, _: _in_pieces(place),
    "clean up": lambda place, _: clean_up(place),
}


def _described(place: Path) -> dict[str, Any]:
    """What a reader finds who has only the newest checkpoint."""
    alone = place.with_name(f"{place.name}-alone")
    shutil.copytree(place, alone)
    for entry in sorted((alone / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    table = DeltaTable(str(alone))
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    found = {
        "files": sorted(files, key=lambda one: str(one["path"])),
        "removed": sorted(
            table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False)
        ),
        "rows": sorted(table.to_pyarrow_table().to_pylist(), key=str),
        **truth(alone),
    }
    shutil.rmtree(alone)
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=10))
def test_a_checkpoint_in_pieces_says_what_deltalake_says(steps: list[str]) -> None:
    """Files with their statistics, removed files, ledger, columns, properties, and rows."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "orders"
        DeltaTable.create(
            str(place),
            schema=pa.schema([("n", pa.int64()), ("day", pa.string())]),
            partition_by=["day"],
            configuration={"delta.logRetentionDuration": "interval 0 seconds"},
        )
        for number, step in enumerate(steps, start=1):
            STEPS[step](place, number)
        _write(place, 100)  # the newest version has no checkpoint
        theirs = place.with_name("theirs")
        shutil.copytree(place, theirs)
        _in_pieces(place)
        checkpoint(theirs)
        assert _described(place) == _described(theirs)
