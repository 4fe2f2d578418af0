"""What a joined file holds and says of its columns, on real Delta tables; no Spark."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.transaction import AddAction

from penstock.pipeline import compaction
from penstock.pipeline.join_plan import JoinRules
from penstock.pipeline.lake_commit import LakeTable
from penstock.settings.sections import LakeSettings

FILE_SIZE = 2**30
NAN = float("nan")
NOTE = "n" * 9000  # Arrow's footers have no range for a text of this length


def _rows(start: int, price: float, inner: float) -> Any:
    numbers = [start, start + 1]
    return pa.table(
        {
            "offset": pa.array(numbers, pa.int64()),
            "price": pa.array([start + 0.5, price]),
            "note": [NOTE, None],
            "order": [{"id": number, "weight": inner, "to": {"town": NOTE}} for number in numbers],
        }
    )


def _compacted(root: Path) -> tuple[DeltaTable, dict[str, Any]]:
    """Join all files of the table; what the commit says of the new one."""
    lake = LakeSettings(root=str(root), group="g")
    done = compaction.compact(
        LakeTable(lake, "orders"), lake, JoinRules(FILE_SIZE, 0, 0, finishes_all=True)
    )
    assert (done.files_after, done.joins_refused) == (1, 0)
    table = DeltaTable(root / "orders")
    log = root / "orders" / "_delta_log" / f"{table.version():020d}.json"
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    (stats,) = [json.loads(one["add"]["stats"]) for one in actions if "add" in one]
    return table, stats


def _found(table: DeltaTable, where: str) -> int:
    query = f"select * from orders where {where}"  # noqa: S608 -- the test's own text
    answer = QueryBuilder().register("orders", table).execute(query)
    return int(pa.table(answer.read_all()).num_rows)


def test_fractions_and_long_texts_keep_their_ranges(tmp_path: Path) -> None:
    """Every column of a joined file has its range, fields of structs included."""
    for start in (0, 2):
        write_deltalake(tmp_path / "orders", _rows(start, start + 7.0, -1.5), mode="append")
    table, stats = _compacted(tmp_path)
    least, most = stats["minValues"], stats["maxValues"]
    assert least == {
        "offset": 0,
        "price": 0.5,
        "note": "n" * 32,
        "order": {"id": 0, "weight": -1.5, "to": {"town": "n" * 32}},
    }
    assert (most["offset"], most["price"], most["note"]) == (3, 9.0, "n" * 31 + "o")
    assert most["order"] == {"id": 3, "weight": -1.5, "to": {"town": "n" * 31 + "o"}}
    assert _found(table, "price = 9.0") == 1
    assert _found(table, f"note = '{NOTE}'") == 2
    (tmp_path / "orders" / table.file_uris()[0].rpartition("orders/")[2]).unlink()
    assert pl.scan_delta(table.table_uri).filter(pl.col("offset") > 3).collect().height == 0
    assert _found(table, "price > 9.5") == 0, "a file that is gone was skipped"


@pytest.mark.parametrize("position", [0, 2], ids=["first file", "last file"])
def test_a_number_that_is_none_costs_a_joined_file_its_ranges(
    tmp_path: Path, position: int
) -> None:
    """Spark and DataFusion hold NaN for larger than all numbers, and still find its row."""
    for start in (0, 2):
        price = NAN if start == position else 1.0
        write_deltalake(tmp_path / "orders", _rows(start, price, 1.0), mode="append")
    table, stats = _compacted(tmp_path)
    assert "minValues" not in stats
    assert stats["nullCount"]["price"] == 0
    assert _found(table, "price > 1000") == 1
    assert _found(table, '"offset" = 3') == 1


def test_a_number_that_is_none_inside_a_struct_costs_that_field_alone(tmp_path: Path) -> None:
    """The other columns of the joined file keep their ranges, the field has none."""
    for start, inner in ((0, 1.0), (2, NAN)):
        write_deltalake(tmp_path / "orders", _rows(start, 8.0, inner), mode="append")
    table, stats = _compacted(tmp_path)
    assert stats["minValues"]["price"] == 0.5
    assert set(stats["minValues"]["order"]) == {"id", "to"}
    assert _found(table, "\"order\"['weight'] > 1000") == 2


def test_a_text_that_is_not_text_costs_the_ranges_and_no_more(tmp_path: Path) -> None:
    """Spark lets texts hold any bytes: the file is joined, without ranges."""
    texts = pa.array([b"a\xff", b"b"]).view(pa.string())
    for _ in range(2):
        write_deltalake(tmp_path / "orders", pa.table({"note": ["c"]}), mode="append")
    _add_file(tmp_path / "orders", pa.table({"note": texts}))
    _, stats = _compacted(tmp_path)
    assert stats == {"numRecords": 4, "nullCount": {"note": 0}}


def test_files_that_store_the_same_types_otherwise_are_joined(tmp_path: Path) -> None:
    """Texts as views, as deltalake rewrites them, and times as INT96, up to the year 9999."""
    moments = [
        dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
    ]
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = pa.table(
        {
            "topic": ["a", "b"],
            "timestamp": pa.array(moments, pa.timestamp("us", tz="UTC")),
            "headers": pa.array([[{"key": "k", "value": b"v"}], None], headers),
        }
    )
    write_deltalake(tmp_path / "orders", rows, mode="append")
    write_deltalake(tmp_path / "orders", pa.concat_tables([rows, rows.slice(1)]), mode="append")
    DeltaTable(tmp_path / "orders").update({"topic": "'c'"}, predicate="topic = 'b'")
    DeltaTable(tmp_path / "orders").delete("topic = 'c'")
    write_deltalake(tmp_path / "orders", rows.slice(1), mode="append")
    write_deltalake(tmp_path / "orders", rows.slice(1), mode="append")
    schemas = [pa.parquet.read_schema(file) for file in (tmp_path / "orders").glob("*.parquet")]
    assert pa.string_view() in {schema.field("topic").type for schema in schemas}
    _add_file(tmp_path / "orders", rows, use_deprecated_int96_timestamps=True)
    _add_file(tmp_path / "orders", rows.select(["timestamp", "headers", "topic"]))
    table, _ = _compacted(tmp_path)
    found = table.to_pyarrow_table().to_pylist()
    assert sorted(row["timestamp"] for row in found) == [moments[0]] * 4 + [moments[1]] * 4
    assert {(row["topic"], row["timestamp"]) for row in found} == set(
        zip("ab", moments, strict=True)
    )


def _add_file(place: Path, rows: Any, **options: Any) -> None:
    """Commit a file as another tool stores it."""
    table = DeltaTable(place)
    name = f"other-{table.version()}.parquet"
    pa.parquet.write_table(rows, place / name, **options)
    stats = json.dumps({"numRecords": len(rows)})
    action = AddAction(name, (place / name).stat().st_size, {}, 1, True, stats)
    table.create_write_transaction([action], "append", table.schema())
