"""Records and partitions that cannot be carried are set apart and reported, never skipped."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.model import Epoch, OffsetRange, TopicPartition
from penstock.pipeline import (
    Claim,
    LakeRefusedError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    PlannedRange,
    TopicMadeAgainError,
    TransformationFailedError,
)
from penstock.pipeline.lake_commit import StaleLedgerError

pytestmark = [pytest.mark.broker, pytest.mark.spark]
MakeCarrier = Callable[..., Carrier]


def _with_topic(
    make_carrier: MakeCarrier, transformation: str, *, partitions: int = 1, **table: Any
) -> tuple[Carrier, str]:
    topic = new_topic_name("hard")
    function = f"kit.consumer.transformations:{transformation}" if transformation else ""
    carrier = make_carrier(tables={topic: {"transformation": function, **table}})
    carrier.kafka.create_topic(topic, partitions=partitions)
    return carrier, topic


def _rows(carrier: Carrier, table: str) -> list[dict[str, Any]]:
    stored = DeltaTable(f"{carrier.settings.lake.root}/{table}")
    rows: list[dict[str, Any]] = stored.to_pyarrow_table().to_pylist()
    return rows


def test_undecodable_records_become_dead_letters(make_carrier: MakeCarrier) -> None:
    """Each has its place, reason, key and value; the batch goes on, and nothing is lost."""
    carrier, topic = _with_topic(make_carrier, "decode", columns=["id", "partition", "offset"])
    produce(carrier.settings.kafka, topic, {0: [b'{"id":"a"}', b"\xff\xfe", None, b'{"id":"b"}']})
    result = carrier.carry_all(topic)
    assert (result.records, result.dead_letters) == (4, 2)
    assert {row["id"] for row in _rows(carrier, topic)} == {"a", "b"}
    letters = {
        row["offset"]: row for row in _rows(carrier, carrier.settings.lake.dead_letter_table)
    }
    assert set(letters) == {1, 2}
    assert letters[1]["value"] == b"\xff\xfe"
    assert (letters[2]["key"], letters[2]["value"]) == (b"0-2", None)
    assert letters[1]["reason"] == "not JSON with an id"
    assert letters[1]["topic"] == topic
    verdict = carrier.verify(topic)
    assert verdict.is_exact
    assert (verdict.partitions[0].lake, verdict.partitions[0].dead_letters) == (2, 2)


@pytest.mark.parametrize("newer", ["decode", "decode_all"])
def test_dead_letters_are_kept_once_when_the_writer_dies_in_between(
    make_carrier: MakeCarrier, newer: str
) -> None:
    """After a death between the two commits, the next owner neither repeats nor loses one."""
    carrier, topic = _with_topic(make_carrier, "decode")
    broken = [b"broken 0", b'{"id":"a"}', b"broken 2", b'{"id":"b"}', b"broken 4"]
    produce(carrier.settings.kafka, topic, {0: broken})

    def die(point: str) -> None:
        if point == "dead-letters-committed":
            raise KeyboardInterrupt

    carrier.pipeline._at_point = die
    with pytest.raises(KeyboardInterrupt):
        carrier.carry(carrier.plan(topic, at_most=4))
    assert len(_rows(carrier, carrier.settings.lake.dead_letter_table)) == 2
    second = make_carrier(
        2, tables={topic: {"transformation": f"kit.consumer.transformations:{newer}"}}
    )
    for at_most in (1, 3, None):  # shorter ranges than the one that died
        assert not second.carry(second.plan(topic, at_most=at_most)).failures
    verdict = second.verify(topic)
    assert verdict.is_exact
    assert verdict.partitions[0].ledger == 5
    assert verdict.partitions[0].dead_letters == (3 if newer == "decode" else 2)


@pytest.mark.parametrize("sleeps_at", ["dead-letters-written", "dead-letters-committed"])
def test_a_zombie_with_another_transformation_keeps_no_letter_that_its_next_owner_decodes(
    make_carrier: MakeCarrier, sleeps_at: str
) -> None:
    """Each record is in one place: the zombie is fenced, or the owner finds its dead letters."""
    zombie, topic = _with_topic(make_carrier, "decode")
    owner = make_carrier(
        2, tables={topic: {"transformation": "kit.consumer.transformations:decode_all"}}
    )
    produce(zombie.settings.kafka, topic, {0: [b"broken 0", b'{"id":"a"}', b"broken 2"]})

    def claimed(carrier: Carrier, number: int) -> list[PlannedRange]:
        claim = Claim("controller-topic", Epoch(1, number))
        return [replace(one, claim=claim) for one in carrier.plan(topic)]

    def sleep(point: str) -> None:
        if point == sleeps_at:
            assert not owner.carry(claimed(owner, 2)).failures

    zombie.pipeline._at_point = sleep
    lost = zombie.carry(claimed(zombie, 1)).failures
    assert [type(error) for error in lost.values()] == [StaleLedgerError]
    verdict = owner.verify(topic)
    assert verdict.is_exact, verdict
    assert verdict.partitions[0].dead_letters == (0 if sleeps_at == "dead-letters-written" else 2)


def test_one_poisoned_partition_does_not_stop_the_others(make_carrier: MakeCarrier) -> None:
    """The transformation raises for one partition: that one fails with its message, three go on."""
    carrier, topic = _with_topic(make_carrier, "fails_on_poison", partitions=4)
    good = [b"fine", b"fine"]
    values = {0: good, 1: good, 2: [b"fine", b"poison"], 3: good}
    produce(carrier.settings.kafka, topic, values)
    result = carrier.carry_all(topic)
    failure = result.failures[TopicPartition(topic, 2)]
    assert isinstance(failure, TransformationFailedError)
    assert "poisoned" in failure.message
    assert set(result.carried) == {TopicPartition(topic, number) for number in (0, 1, 3)}
    assert carrier.verify(topic).is_exact


@pytest.mark.parametrize(
    ("transformation", "said"),
    [("raises", "ValueError: no such thing"), ("gives_nothing", "no DataFrame")],
)
def test_a_transformation_that_cannot_work_says_so(
    make_carrier: MakeCarrier, transformation: str, said: str
) -> None:
    """What the function raised or gave is in the failure; nothing is written."""
    carrier, topic = _with_topic(make_carrier, transformation)
    produce(carrier.settings.kafka, topic, {0: [b"x"]})
    (failure,) = carrier.carry_all(topic).failures.values()
    assert isinstance(failure, TransformationFailedError)
    assert said in failure.message


def test_a_transformation_that_leaves_no_row(make_carrier: MakeCarrier) -> None:
    """Spark reads nothing then, and counts nothing: the records are counted in their own pass."""
    carrier, topic = _with_topic(make_carrier, "mark_all", partitions=2)
    produce(carrier.settings.kafka, topic, {0: [b"a", b"bc"], 1: [b"d"]})
    result = carrier.carry_all(topic)
    assert (result.failures, result.records, result.dead_letters) == ({}, 3, 3)
    assert result.carried == {TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 1}
    letters = _rows(carrier, carrier.settings.lake.dead_letter_table)
    assert sorted(row["value"] for row in letters) == [b"a", b"bc", b"d"]
    other, dropped = _with_topic(make_carrier, "keep_none")
    produce(other.settings.kafka, dropped, {0: [b"x", b"y"]})
    result = other.carry_all(dropped)
    assert (result.failures, result.records, result.dead_letters) == ({}, 2, 0)
    assert result.carried == {TopicPartition(dropped, 0): 2}


def test_python_functions_and_escaped_partition_values(make_carrier: MakeCarrier) -> None:
    """A Python function runs per record; odd partition values survive the path and the log."""
    carrier, topic = _with_topic(make_carrier, "upper_in_python")
    produce(carrier.settings.kafka, topic, {0: [b"abc"]})
    assert not carrier.carry_all(topic).failures
    assert [row["text"] for row in _rows(carrier, topic)] == ["ABC"]
    other, odd = _with_topic(make_carrier, "by_kind", partitions=2, partition_by=["kind"])
    produce(other.settings.kafka, odd, {0: [b"x"], 1: [b"y"]})
    assert not other.carry_all(odd).failures
    assert {row["kind"] for row in _rows(other, odd)} == {"a:b c/0", "a:b c/1"}
    assert other.verify(odd).is_exact


def test_an_offset_out_of_range_stops_that_partition(make_carrier: MakeCarrier) -> None:
    """Retention was quicker: that partition fails, the other is carried, nothing is skipped."""
    carrier, topic = _with_topic(make_carrier, "", partitions=2)
    produce(carrier.settings.kafka, topic, {0: [b"x"] * 6, 1: [b"y"] * 6})
    planned = carrier.plan(topic)
    client = AdminClient({"bootstrap.servers": carrier.settings.kafka.bootstrap_servers})
    client.delete_records([ClientPartition(topic, 0, 4)])[ClientPartition(topic, 0, 4)].result(90)
    result = carrier.carry(planned)
    assert isinstance(result.failures[TopicPartition(topic, 0)], OffsetOutOfRangeError)
    assert result.carried == {TopicPartition(topic, 1): 6}
    # What the operator chose to skip is skipped by a plan that says so.
    place = TopicPartition(topic, 0)
    skipping = PlannedRange(OffsetRange(place, 4, 6), carrier.topic_id(topic))
    assert carrier.carry([skipping]).carried == {place: 6}


def test_a_log_that_ends_early_stops_that_partition(make_carrier: MakeCarrier) -> None:
    """A range beyond the log's end is reported as records the broker lost."""
    carrier, topic = _with_topic(make_carrier, "")
    produce(carrier.settings.kafka, topic, {0: [b"x"] * 3})
    place = TopicPartition(topic, 0)
    result = carrier.carry([PlannedRange(OffsetRange(place, 0, 5), carrier.topic_id(topic))])
    assert isinstance(result.failures[place], LogTruncatedError)
    assert carrier.carry_all(topic).records == 3


def test_a_topic_made_again_is_not_taken_for_the_old_one(make_carrier: MakeCarrier) -> None:
    """A range of the old topic is refused; the new one starts afresh in the same table."""
    carrier, topic = _with_topic(make_carrier, "")
    produce(carrier.settings.kafka, topic, {0: [b"old"] * 5})
    carrier.carry(carrier.plan(topic, at_most=2))
    planned = carrier.plan(topic)
    carrier.kafka.delete_topic(topic)
    while topic in carrier.kafka.topics([topic]):
        pass
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: [b"new"] * 5})
    result = carrier.carry(planned)
    assert isinstance(result.failures[TopicPartition(topic, 0)], TopicMadeAgainError)
    assert carrier.carry_all(topic).records == 5
    values = [row["value"] for row in _rows(carrier, topic)]
    assert sorted(values) == [b"new"] * 5 + [b"old"] * 2
    assert carrier.verify(topic).is_exact


def test_a_lake_that_cannot_be_written_is_said(make_carrier: MakeCarrier, tmp_path: Path) -> None:
    """Where the lake should be there is none: nothing is carried, and the ledger stands still."""
    (tmp_path / "lake").write_text("not a folder")
    carrier, topic = _with_topic(make_carrier, "")
    produce(carrier.settings.kafka, topic, {0: [b"x"]})
    planned = [PlannedRange(OffsetRange(TopicPartition(topic, 0), 0, 1), carrier.topic_id(topic))]
    (failure,) = carrier.carry(planned).failures.values()
    assert isinstance(failure, LakeRefusedError)
    (tmp_path / "lake").unlink()
    assert carrier.carry(planned).records == 1
    assert carrier.verify(topic).is_exact


def test_a_full_lake_is_said_and_leaves_nothing(
    make_carrier: MakeCarrier, small_disk: Path
) -> None:
    """The disk is full: the batch is dropped whole, and is carried when there is space."""
    topic = new_topic_name("full")
    carrier = make_carrier(root=str(small_disk), compression="uncompressed")
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: [bytes([n % 251]) * 900_000 for n in range(6)]})
    (failure,) = carrier.carry_all(topic).failures.values()
    assert isinstance(failure, LakeRefusedError)
    assert carrier.carry(carrier.plan(topic, at_most=1)).records == 1
    assert carrier.verify(topic).is_exact
