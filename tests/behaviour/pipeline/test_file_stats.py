"""What a commit says of a file must never hide rows from a reader that filters."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from penstock.pipeline.file_statistics import file_stats
from penstock.pipeline.written_files import partition_values

MOMENT = dt.datetime(2026, 11, 15, 21, 0, 0, 123456, tzinfo=dt.UTC)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _stored(root: Path, rows: Any) -> tuple[DeltaTable, dict[str, Any]]:
    table = DeltaTable.create(root, schema=rows.schema)
    pa.parquet.write_table(rows, root / "f.parquet", row_group_size=1)
    stats = file_stats(pa.parquet.read_metadata(root / "f.parquet"))
    size = (root / "f.parquet").stat().st_size
    action = AddAction("f.parquet", size, {}, 1, True, stats)
    table.create_write_transaction([action], "append", rows.schema)
    return DeltaTable(root), json.loads(stats)


def test_raw_columns_have_their_ranges(tmp_path: Path) -> None:
    """Offsets, times and short names have ranges that hold every row."""
    rows = pa.table(
        {
            "topic": ["a", "b"],
            "offset": pa.array([3, 9], pa.int64()),
            "timestamp": pa.array([MOMENT, MOMENT], pa.timestamp("us", tz="UTC")),
            "value": pa.array([b"x", None], pa.binary()),
            "headers": pa.array([None, [{"key": "k", "value": b"v"}]], HEADERS),
        }
    )
    table, stats = _stored(tmp_path, rows)
    assert stats["minValues"] == {
        "topic": "a",
        "offset": 3,
        "timestamp": "2026-11-15T21:00:00.123Z",
    }
    assert stats["maxValues"]["timestamp"] == "2026-11-15T21:00:00.124Z"
    field = pyarrow.dataset.field
    dataset = table.to_pyarrow_dataset()
    for wanted in (field("topic") == "b", field("offset") == 9, field("timestamp") == MOMENT):
        assert dataset.to_table(filter=wanted).num_rows >= 1


@pytest.mark.parametrize(
    "odd",
    [
        pa.array(["x" * 100, "y"]),
        pa.array([None, None], pa.string()),
        pa.array([1.5, float("nan")]),
        pa.array([{"a": 1}, {"a": 2}]),
    ],
    ids=["long text", "nothing", "fractions", "nested"],
)
def test_a_column_without_a_range_takes_all_ranges_away(tmp_path: Path, odd: Any) -> None:
    """With one range unknown only the count is said, and every filter still finds its rows."""
    rows = pa.table({"offset": pa.array([3, 9], pa.int64()), "odd": odd})
    table, stats = _stored(tmp_path, rows)
    assert stats == {"numRecords": 2}
    found = table.to_pyarrow_dataset().to_table(filter=pyarrow.dataset.field("offset") == 9)
    assert found.num_rows == 1


def test_partition_values_are_read_from_the_path() -> None:
    """Escapes are undone, and the folder for rows without a value is no value."""
    path = "topic-x/kind=a%3Ab c/date=__HIVE_DEFAULT_PARTITION__/part-0.parquet"
    assert partition_values(path) == {"kind": "a:b c", "date": None}
