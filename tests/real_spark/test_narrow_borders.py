"""A record that one way, or neither, can carry: the border is its partition, or itself."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kit.kafka.raw_produce import produce_raw
from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.model import TopicPartition
from penstock.pipeline import written_files
from penstock.pipeline.file_statistics import file_stats
from penstock.pipeline.ways import Way

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
MakeCarrier = Callable[..., Carrier]


def note_ways(carrier: Carrier) -> list[tuple[Way, set[TopicPartition]]]:
    """Which partitions took which way, in order."""
    taken: list[tuple[Way, set[TopicPartition]]] = []
    right = carrier.pipeline._run

    def run(by_table: Any, writer: Any, way: Way) -> Any:
        taken.append((way, {one.partition for some in by_table.values() for one in some}))
        return right(by_table, writer, way)

    carrier.pipeline._run = run  # type: ignore[method-assign] # it only listens
    return taken


def test_a_header_name_that_is_no_text_sends_its_own_partition_the_other_way(
    make_carrier: MakeCarrier,
) -> None:
    """Other tables pass through in the same job, other partitions in the next; it is remembered."""
    carrier = make_carrier()
    mixed, healthy = new_topic_name("mixed"), new_topic_name("healthy")
    bad, good, beside = (
        TopicPartition(mixed, 0),
        TopicPartition(mixed, 1),
        TopicPartition(healthy, 0),
    )
    carrier.kafka.create_topic(mixed, partitions=2)
    carrier.kafka.create_topic(healthy, partitions=1)

    def write() -> None:
        produce(carrier.settings.kafka, mixed, {0: [b"x"] * 3, 1: [b"x"] * 5})
        produce(carrier.settings.kafka, healthy, {0: [b"x"] * 5})
        now_ms = round(time.time() * 1000)
        produce_raw(
            carrier.settings.kafka, bad, b"v", headers=[(b"\xff\xfe", b"1")], timestamp_ms=now_ms
        )

    taken = note_ways(carrier)
    for expected in (
        [
            (Way.PASS_THROUGH, {bad, good, beside}),
            (Way.PASS_THROUGH, {good}),
            (Way.CONNECTOR, {bad}),
        ],
        [(Way.PASS_THROUGH, {good, beside}), (Way.CONNECTOR, {bad})],
    ):
        write()
        taken.clear()
        result = carrier.carry([*carrier.plan(mixed), *carrier.plan(healthy)])
        assert not result.failures
        assert result.records == 14
        assert sorted(taken, key=lambda one: one[0].value) == expected
    assert carrier.verify(mixed, healthy).is_exact


def test_a_record_that_was_kept_before_a_crash_is_not_carried_too(
    make_carrier: MakeCarrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next version of the program can carry it; its dead letter is committed, its table not."""
    carrier = make_carrier()
    topic = new_topic_name("kept")
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: [b"x"] * 6})
    monkeypatch.setattr(written_files, "file_stats", _fails_for_offset_three)

    def die(point: str) -> None:
        if point == "dead-letters-committed":
            raise KeyboardInterrupt

    carrier.pipeline._at_point = die
    with pytest.raises(KeyboardInterrupt):
        carrier.carry_all(topic)
    monkeypatch.undo()
    second = make_carrier(1, 2)
    assert second.carry_all(topic).carried == {TopicPartition(topic, 0): 6}
    (verdict,) = second.verify(topic).partitions
    assert (verdict.lake, verdict.dead_letters, verdict.is_exact) == (5, 1, True)


def _fails_for_offset_three(footer: Any) -> str:
    """Describing a file of the topic's table fails if it holds this record."""
    text = file_stats(footer)
    known = json.loads(text)
    is_letter = "reason" in known["nullCount"]
    if not is_letter and known["minValues"]["offset"] <= 3 <= known["maxValues"]["offset"]:
        raise OverflowError("nobody foresaw this")
    return text


@pytest.mark.parametrize("function", ["", "kit.consumer.transformations:decode_all"])
def test_a_record_that_no_way_carries_is_a_dead_letter(
    make_carrier: MakeCarrier, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """It is kept with its place, reason and content; its partition and the others are carried."""
    topic = new_topic_name("refused")
    carrier = make_carrier(tables={topic: {"transformation": function}})
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: [b"x"] * 6})
    monkeypatch.setattr(written_files, "file_stats", _fails_for_offset_three)
    result = carrier.carry_all(topic)
    assert not result.failures
    assert (result.carried, result.dead_letters) == ({TopicPartition(topic, 0): 6}, 1)
    root = Path(carrier.settings.lake.root)
    stored = DeltaTable(root / topic).to_pyarrow_table(columns=["offset"])
    assert sorted(stored["offset"].to_pylist()) == [0, 1, 2, 4, 5]
    letters = DeltaTable(root / carrier.settings.lake.dead_letter_table).to_pyarrow_table()
    (row,) = letters.to_pylist()
    assert (row["topic"], row["partition"], row["offset"]) == (topic, 0, 3)
    assert (row["key"], row["value"]) == (b"0-3", b"x")
    assert "nobody foresaw this" in row["reason"]
    assert carrier.verify(topic).is_exact
