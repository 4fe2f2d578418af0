"""The ranges of files that real Spark wrote, as readers of the lake use them."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def _order(number: int, **other: Any) -> bytes:
    row: dict[str, Any] = {"id": number, "price": number + 0.5, "paid": bool(number % 2)}
    row |= {"day": f"2026-01-{number + 1:02d}", "amount": f"{number}.25", "note": "n" * 9000}
    return json.dumps(row | other).encode()


def _carried(make_carrier: Callable[..., Carrier], values: list[bytes]) -> tuple[DeltaTable, Any]:
    topic = new_topic_name("typed")
    carrier = make_carrier(tables={topic: {"transformation": "kit.lake.typed_rows:typed"}})
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: values})
    assert not carrier.carry_all(topic).failures
    table = DeltaTable(f"{carrier.settings.lake.root}/{topic}")
    logs = sorted(Path(table.table_uri.removeprefix("file://"), "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in logs[-1].read_text(encoding="utf-8").splitlines()]
    (stats,) = [json.loads(one["add"]["stats"]) for one in actions if "add" in one]
    return table, stats


def test_a_typed_table_has_the_range_of_every_column(make_carrier: Callable[..., Carrier]) -> None:
    """Doubles, dates, decimals, booleans, long texts and structs; all-null ones do no harm."""
    table, stats = _carried(make_carrier, [_order(number) for number in range(5)])
    least, most = stats["minValues"], stats["maxValues"]
    assert set(least) == {
        *("topic", "partition", "offset", "timestamp", "id", "price", "paid", "day", "amount"),
        *("note", "inner"),
    }
    assert (most["price"], most["paid"], most["day"]) == (4.5, True, "2026-01-05")
    assert (least["note"], most["note"]) == ("n" * 32, "n" * 31 + "o")
    assert most["inner"] == {"id": 4, "note": "n" * 31 + "o"}
    assert stats["nullCount"]["nothing"] == 5
    for wanted, found in (
        (pl.col("paid"), 2),
        (pl.col("amount") == Decimal("3.25"), 1),
        (pl.col("day") >= dt.date(2026, 1, 4), 2),
        (pl.col("nothing").is_null(), 5),
        (pl.col("note") == "n" * 9000, 5),
    ):
        assert pl.scan_delta(table.table_uri).filter(wanted).collect().height == found
        assert table.to_pyarrow_dataset().to_table().num_rows == 5


def test_a_number_that_is_none_costs_the_ranges(make_carrier: Callable[..., Carrier]) -> None:
    """Spark holds NaN for larger than all numbers: a range without it would hide the row."""
    table, stats = _carried(make_carrier, [_order(1), _order(2, price=None)])
    assert "minValues" not in stats
    assert pl.scan_delta(table.table_uri).filter(pl.col("price") == 1.5).collect().height == 1
    assert pl.scan_delta(table.table_uri).filter(pl.col("id") == 2).collect().height == 1
