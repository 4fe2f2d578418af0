"""What a commit says about a file helps readers that filter, and never hides a row from them."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.transaction import AddAction

from penstock.pipeline.copied_values import CopiedValues
from penstock.pipeline.file_statistics import cut_text_up, file_stats
from penstock.pipeline.written_files import partition_values

MOMENT = dt.datetime(2026, 11, 15, 21, 0, 0, 123456, tzinfo=dt.UTC)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIME = pa.timestamp("us", tz="UTC")


def _stored(root: Path, rows: Any, *, is_copied: bool = False) -> tuple[DeltaTable, dict[str, Any]]:
    """A table of one file; `is_copied`: its values were looked at, as in a compaction."""
    copied = CopiedValues() if is_copied else None
    if copied is not None:
        copied.add(rows)
    table = DeltaTable.create(root, schema=rows.schema)
    pa.parquet.write_table(rows, root / "f.parquet", row_group_size=1)
    stats = file_stats(pa.parquet.read_metadata(root / "f.parquet"), copied=copied)
    size = (root / "f.parquet").stat().st_size
    action = AddAction("f.parquet", size, {}, 1, True, stats)
    table.create_write_transaction([action], "append", rows.schema)
    return DeltaTable(root), json.loads(stats, parse_float=Decimal)


Reader = Callable[[DeltaTable, str, Any], int]


def _pyarrow(table: DeltaTable, column: str, value: Any) -> int:
    field = pyarrow.dataset.field(column)
    wanted = field.is_null() if value is None else field == value
    return int(table.to_pyarrow_dataset().to_table(filter=wanted).num_rows)


def _datafusion(table: DeltaTable, column: str, value: Any) -> int:
    if value is None:
        wanted = f"{column} is null"
    elif isinstance(value, dt.datetime | dt.date | Decimal):
        wanted = f"{column} = arrow_cast('{value}', '{_arrow_name(table, column)}')"
    elif isinstance(value, str):
        wanted = f"{column} = '{value}'"
    else:
        wanted = f"{column} = {value}"
    query = f"select * from t where {wanted}"  # noqa: S608 -- the test's own values
    answer = QueryBuilder().register("t", table).execute(query)
    return int(pa.table(answer.read_all()).num_rows)


def _arrow_name(table: DeltaTable, column: str) -> str:
    kind = pa.schema(table.schema().to_arrow()).field(column).type
    if pa.types.is_decimal(kind):
        return f"Decimal128({kind.precision}, {kind.scale})"
    return "Date32" if pa.types.is_date(kind) else 'Timestamp(Microsecond, Some("UTC"))'


def _polars(table: DeltaTable, column: str, value: Any) -> int:
    field = pl.col(column)
    wanted = field.is_null() if value is None else field == value
    return pl.scan_delta(table.table_uri).filter(wanted).collect().height


READERS = pytest.mark.parametrize("reader", [_pyarrow, _datafusion, _polars])
COLUMNS: dict[str, Any] = {
    "topic": pa.array(["a", "b", "b"]),
    "offset": pa.array([3, 9, 10], pa.int64()),
    "small": pa.array([-3, None, 7], pa.int32()),
    "timestamp": pa.array([MOMENT, MOMENT, None], TIME),
    "day": pa.array([dt.date(2026, 1, 31), dt.date(1, 1, 1), None]),
    "price": pa.array([Decimal("12.50"), Decimal("-0.01"), None], pa.decimal128(9, 2)),
    "wealth": pa.array([Decimal("9" * 36 + ".99"), None, Decimal(0)], pa.decimal128(38, 2)),
    "flag": pa.array([False, True, None]),
    "off": pa.array([False, False, False]),
    "long_text": pa.array(["x" * 100, "x" * 99 + "y", None]),
    "nothing": pa.array([None, None, None], pa.string()),
    "fraction": pa.array([0.1, -2.5, None], pa.float64()),
    "value": pa.array([b"x", None, b"y"], pa.binary()),
    "headers": pa.array([None, [{"key": "k", "value": b"v"}], None], HEADERS),
    "order": pa.array([{"id": 1, "to": {"town": "x" * 50}}, {"id": 5, "to": None}, None]),
}


@READERS
@pytest.mark.parametrize("column", [name for name in COLUMNS if name not in ("headers", "order")])
def test_every_value_is_found_by_a_filter(tmp_path: Path, reader: Reader, column: str) -> None:
    """Each reader finds every row by the value of any of its columns, null included."""
    rows = pa.table(COLUMNS)
    table, stats = _stored(tmp_path, rows, is_copied=True)
    assert "minValues" in stats
    values = rows[column].to_pylist()
    for value in set(values):
        if isinstance(value, bytes) and reader is _datafusion:
            continue  # its SQL has no literal for bytes
        assert reader(table, column, value) == values.count(value), value


@READERS
def test_readers_skip_files_by_the_ranges(tmp_path: Path, reader: Reader) -> None:
    """A file whose range lies elsewhere is not read: it may even be missing."""
    table, _ = _stored(tmp_path, pa.table(COLUMNS), is_copied=True)
    (tmp_path / "f.parquet").unlink()
    for column, value in {
        "offset": 11,
        "topic": "c",
        "long_text": "y",
        "price": Decimal("13.00"),
        "off": True,
        "day": dt.date(2027, 1, 1),
    }.items():
        if not (column == "off" and reader is _datafusion):  # it ignores ranges of booleans
            assert reader(table, column, value) == 0, column


def test_ranges_are_written_as_delta_wants_them(tmp_path: Path) -> None:
    """Times and texts are cut outwards, decimals exact, structs nested, null counts complete."""
    _, stats = _stored(tmp_path, pa.table(COLUMNS), is_copied=True)
    least, most, nulls = stats["minValues"], stats["maxValues"], stats["nullCount"]
    assert (least["timestamp"], most["timestamp"]) == (
        "2026-11-15T21:00:00.123Z",
        "2026-11-15T21:00:00.124Z",
    )
    assert (least["day"], most["day"]) == ("0001-01-01", "2026-01-31")
    assert (least["flag"], most["flag"], most["off"]) == (False, True, False)
    assert (least["long_text"], most["long_text"]) == ("x" * 32, "x" * 31 + "y")
    assert (least["price"], most["wealth"]) == (Decimal("-0.01"), Decimal("9" * 36 + ".99"))
    assert (least["order"], most["order"]) == (
        {"id": 1, "to": {"town": "x" * 32}},
        {"id": 5, "to": {"town": "x" * 31 + "y"}},
    )
    assert nulls["order"] == {"id": 1, "to": {"town": 2}}
    assert (nulls["nothing"], nulls["flag"], nulls["offset"]) == (3, 1, 0)
    assert {"nothing", "value", "headers"}.isdisjoint(least)


@READERS
@pytest.mark.parametrize(
    "odd",
    [
        pa.array([1.5, float("nan")]),
        pa.array([1.5, float("inf")]),
        pa.array([2**60, 0], TIME),
        pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32()),
    ],
    ids=["not a number", "infinite", "year 38000", "a far day"],
)
def test_a_column_without_a_known_range_hides_nothing(
    tmp_path: Path, reader: Reader, odd: Any
) -> None:
    """No column has a range then, and filters on this and on other columns find their rows."""
    rows = pa.table({"offset": pa.array([3, 9], pa.int64()), "odd": odd})
    table, stats = _stored(tmp_path, rows)
    assert stats == {"numRecords": 2, "nullCount": {"offset": 0, "odd": 0}}
    assert reader(table, "offset", 9) == 1
    if pa.types.is_floating(odd.type):
        assert reader(table, "odd", 1.5) == 1


def test_a_field_of_a_struct_without_a_range_leaves_the_others_theirs(tmp_path: Path) -> None:
    """A NaN inside a struct costs that field its range, and no other column."""
    rows = pa.table({"offset": [3, 9], "order": [{"id": 1, "price": float("nan")}] * 2})
    table, stats = _stored(tmp_path, rows)
    assert stats["minValues"] == {"offset": 3, "order": {"id": 1}}
    wanted = pyarrow.dataset.field("order", "id") == 1
    assert table.to_pyarrow_dataset().to_table(filter=wanted).num_rows == 2


def test_a_cut_text_stays_above_the_whole_one() -> None:
    """Also where the next character is no character, or there is none."""
    for text in ("a" * 40, "a" * 31 + "\ud7ff" + "b", "a" * 31 + "\U0010ffff" * 9):
        cut = cut_text_up(text)
        assert len(cut) <= 32
        assert cut.encode() > text.encode()
    highest = "\U0010ffff" * 40
    assert cut_text_up(highest) == highest
    assert cut_text_up("short") == "short"


def test_partition_values_are_read_from_the_path() -> None:
    """Escapes are undone, and the folder for rows without a value is no value."""
    path = "topic-x/kind=a%3Ab c/date=__HIVE_DEFAULT_PARTITION__/part-0.parquet"
    assert partition_values(path) == {"kind": "a:b c", "date": None}
