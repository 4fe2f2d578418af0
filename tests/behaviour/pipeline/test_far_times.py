"""Rows with times that Python has no type for."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.model import TopicPartition
from penstock.pipeline.far_times import FarTime, far_columns, python_rows
from penstock.pipeline.raw_records import _raw_row

FAR_US = 1_790_000_000_000 * 10**6  # milliseconds that were taken for seconds
NOW_US = 1_790_000_000 * 10**6
DAY = 10**7


def column(kind: pa.DataType, *values: int | None) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind)


def test_far_times_do_not_stop_who_looks() -> None:
    """The other values are what they are, also those of the same column."""
    kind = pa.timestamp("us", tz="UTC")
    table = pa.table(
        {
            "id": ["a", "b", "c"],
            "at": column(kind, FAR_US, NOW_US, None),
            "day": pa.array([DAY, 0, None], pa.int32()).cast(pa.date32()),
            "inside": pa.array([[FAR_US], [], None], pa.list_(kind)),
        }
    )
    rows = python_rows(table)
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    now = datetime.fromtimestamp(NOW_US / 1e6, UTC)
    assert [row["at"] for row in rows] == [FarTime(58692), now, None]
    assert [row["day"] for row in rows] == [FarTime(29349), date(1970, 1, 1), None]
    assert [row["inside"] for row in rows] == [FarTime(None), [], None]
    assert (str(FarTime(58692)), str(FarTime(None))) == ("in the year 58692", "far from now")


def test_only_columns_that_are_far_as_a_whole_are_named() -> None:
    """One damaged record makes no mistake of the transformation."""
    rows: list[dict[str, Any]] = [
        {"a": FarTime(58692), "b": FarTime(58692), "c": None, "d": 1},
        {"a": None, "b": datetime.now(UTC), "c": None, "d": 2},
    ]
    assert far_columns(rows) == {"a": FarTime(58692)}
    assert far_columns([]) == {}


def test_ordinary_rows_stay_as_they_are() -> None:
    """Without a look at each value."""
    assert python_rows(pa.table({"id": [1, None]})) == [{"id": 1}, {"id": None}]


def test_a_raw_record_is_shown_whatever_its_time_is() -> None:
    """Its producer chose the time."""
    place = TopicPartition("orders", 0)
    shown = {
        time_ms: _raw_row(KafkaRecord(place, 7, time_ms, None, None, ()))["timestamp"]
        for time_ms in (0, 2**62)
    }
    assert shown == {0: datetime(1970, 1, 1, tzinfo=UTC), 2**62: f"{2**62} ms after 1970"}
