"""delta-spark, the reference reader, skips the files that real Spark wrote by their statistics."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from kit.lake.delta_spark import DeltaSpark
from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.pipeline.upkeep import keep_up

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
FILES = 5
# A filter, and the offsets of the ordinary records that match.
FILTERS: list[tuple[str, list[int]]] = [
    ("offset = 3", [3]),
    ("partition = 1", []),
    ("topic = 'other'", []),
    ("timestamp < timestamp'2020-01-01 00:00:00'", []),
    ("timestamp > timestamp'2020-01-01 00:00:00'", [0, 1, 2, 3, 4]),
    ("id = 2", [2]),
    ("id in (1, 4)", [1, 4]),
    ("price >= 3.5", [3, 4]),
    ("paid", [1, 3]),
    ("not paid", [0, 2, 4]),
    ("day = date'2026-01-04'", [3]),
    ("amount < 1.25", [0]),
    ("note = repeat('c', 9000)", [2]),
    ("note > 'd'", [3, 4]),
    ("nothing is null", [0, 1, 2, 3, 4]),
    ("nothing is not null", []),
    ("inner.id = 4", [4]),
    ("inner.note < 'b'", [0]),
    ("id = 2 and inner.id = 3", []),
]


def _order(number: int, **other: Any) -> bytes:
    row: dict[str, Any] = {"id": number, "price": number + 0.5, "paid": bool(number % 2)}
    row |= {"day": f"2026-01-{number + 1:02d}", "amount": f"{number}.25"}
    return json.dumps(row | {"note": "abcdefgh"[number] * 9000} | other).encode()


def _carried_one_by_one(
    make_carrier: Callable[..., Carrier], values: list[bytes]
) -> tuple[Carrier, str, str]:
    """A table with a file for each record; its carrier, its topic and its place."""
    topic = new_topic_name("skipped")
    carrier = make_carrier(
        tables={topic: {"transformation": "kit.lake.typed_rows:typed"}}, removed_file_retention="1d"
    )
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: values})
    while planned := carrier.plan(topic, at_most=1):
        assert not carrier.carry(planned).failures
    place = f"{carrier.settings.lake.root}/{topic}"
    assert len(DeltaTable(place).file_uris()) == len(values)
    return carrier, topic, place


def _offsets(spark: DeltaSpark, place: str, where: str) -> tuple[list[int], int]:
    found = spark.scan(place, where, ["offset"])
    return sorted(row["offset"] for row in found.rows), found.files_read


def test_delta_spark_finds_what_is_no_number_before_and_after_files_are_joined(
    make_carrier: Callable[..., Carrier], delta_spark: DeltaSpark
) -> None:
    """The file with NaN is read by every filter; joined files hide no row of any filter."""
    values = [*(_order(number) for number in range(FILES)), _order(FILES, price=None)]
    carrier, topic, place = _carried_one_by_one(make_carrier, values)
    assert _offsets(delta_spark, place, "price > 1000") == ([FILES], 1)
    assert _offsets(delta_spark, place, "id = 2") == ([2], 2)
    (report,) = keep_up(carrier.settings.lake, [topic])
    assert report.files_after == 1
    assert _offsets(delta_spark, place, "price > 1000") == ([FILES], 1)
    for where, offsets in FILTERS:
        found, _ = _offsets(delta_spark, place, where)
        assert [one for one in found if one != FILES] == offsets, where
