"""When a roll-out is rolled back, and when what happens is not the new deployment's fault."""

from dataclasses import replace

import pytest

from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from penstock.controller.core.roll_out_signs import proven_topics
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.state import ConsumerRecord, ConsumerStatus, RollOut, State
from penstock.messages import ConsumerPhase, ConsumerReport, ReportedPartition

# Consumer 3 is of the new version, and has taken over the partitions of consumer 1.
ONE_REPLACED = (
    *TWO_CONSUMERS,
    "request u1: update",
    "the new deployment works",
    "tick +500",
    "consumer 3 reports",
    "tick +500",
    "consumer 1 stopped orders-0@1.1 orders-1@1.2",
    "consumer 3 started orders-0@1.4 orders-1@1.5",
    "consumer 1 is deleted",
)
BEGINS_AGAIN = "  > deploy as before, as version 2"


def roll_out_of(teller: Storyteller) -> RollOut:
    assert teller.state is not None
    assert teller.state.roll_out is not None
    return teller.state.roll_out


def test_a_new_consumer_that_carries_lets_the_next_one_have_its_turn() -> None:
    """Before it has shown that, the roll-out waits."""
    teller = after(*ONE_REPLACED)
    teller.tell("tick +500")
    assert roll_out_of(teller).replacing is None
    teller.tell("consumer 3 reports orders-0@1.4 orders-1@1.5, behind_records=0")
    assert "  > create consumer 1 version 1" in teller.tell("tick +500")
    assert roll_out_of(teller).replacing == 2


# The only consumer of a group that may have no second one.
ONLY_ONE = (
    "settings consumers_max=1",
    "a controller starts with epoch 1",
    "deployed:",
    "deployed:",
    "speeds orders-0=40",
    "tick +500",
    "packed 1: orders-0",
    "consumer 1 reports",
    "consumer 1 started orders-0@1.1",
    "request u1: update",
    "the new deployment works",
)


def test_the_only_consumer_is_replaced_too() -> None:
    """Nobody could take its partitions, and the roll-out waited without a word, for ever."""
    teller = after(*ONLY_ONE)
    assert "  > create consumer 2 version 1" in teller.tell("tick +500")
    assert not any("stop" in line for line in teller.tell("tick +500")), "it still carries"
    assert "  > stop at 1: orders-0@1.1 (plan 3)" in teller.tell("consumer 2 reports")
    assert "  > start at 2: orders-0@1.2 (plan 3)" in teller.tell("consumer 1 stopped orders-0@1.1")
    teller.tell("consumer 2 started orders-0@1.2")
    teller.tell("tick +500")
    teller.tell("consumer 1 is deleted")
    teller.tell("consumer 2 reports orders-0@1.2, behind_records=0")
    assert "  > answer u1: done" in teller.tell("tick +500")


def test_the_only_consumer_carries_on_when_the_new_one_does_not_come_up() -> None:
    """One of the former deployment takes over from it."""
    teller = after(*ONLY_ONE, "tick +500", "consumer 2 cannot be created: no such image")
    assert BEGINS_AGAIN in teller.tell("tick +500")
    assert teller.state is not None
    assert [one.consumer for one in teller.state.holdings.values()] == [1]


def report_of(*rows: ReportedPartition) -> ConsumerReport:
    return ConsumerReport(
        consumer_id=3,
        incarnation=1,
        sequence=1,
        controller_epoch=1,
        plan_number=1,
        report_number=1,
        phase=ConsumerPhase.RUNNING,
        behind_records=0,
        owned=rows,
    )


def row(topic: str, partition: int, **measured: float) -> ReportedPartition:
    content = {"topic": topic, "partition": partition, "epoch": "1.1", **measured}
    return ReportedPartition.model_validate(content)


@pytest.mark.parametrize(
    ("rows", "proven"),
    [
        ([row("a", 0, records_per_s=3)], {"a"}),
        ([row("a", 0, next_offset=5, end_offset=5)], {"a"}),
        ([row("a", 0, next_offset=4, end_offset=5)], set()),
        ([row("a", 0, next_offset=5)], set()),
        ([row("a", 0, end_offset=5)], set()),
        ([row("a", 0, next_offset=5, end_offset=5), row("a", 1)], set()),
        ([row("a", 0, records_per_s=3), row("a", 1)], {"a"}),
        ([row("a", 0, records_per_s=3), row("b", 0, next_offset=4, end_offset=5)], {"a"}),
        ([row("a", 0, records_per_s=0, next_offset=4, end_offset=5)], set()),
    ],
)
def test_a_topic_is_proven_by_a_record_or_by_its_ends(
    rows: list[ReportedPartition], proven: set[str]
) -> None:
    """An end that was not read yet says nothing, and neither does another topic."""
    record = ConsumerRecord(ConsumerStatus.READY, 0)
    assert proven_topics(record, report_of(*rows)) == proven
    known = replace(record, proven_topics=frozenset({"c"}))
    assert proven_topics(known, report_of(*rows)) == proven | {"c"}


def test_the_roll_out_waits_for_every_topic_of_a_new_consumer() -> None:
    """One that carries nothing of `orders` is not done because of what it carries of another."""
    teller = after(*ONE_REPLACED)
    teller.tell("consumer 3 reports orders-0@1.4 orders-1@1.5")
    assert "  > create consumer 1 version 1" not in teller.tell("tick +500")
    assert roll_out_of(teller).replacing is None


@pytest.mark.parametrize("reason", ["transformation_failed", "schema_changed", "table_not_served"])
def test_what_the_deployment_may_be_at_fault_for_rolls_it_back(reason: str) -> None:
    """The history and the answer have the partition, the consumer and the reason."""
    teller = after(*ONE_REPLACED, f"consumer 3 stopped orders-1@1.5, {reason}")
    lines = teller.tell("tick +500")
    assert BEGINS_AGAIN in lines
    assert any(f"orders-1 stopped at consumer 3 ({reason})" in line for line in lines)


def test_only_the_first_fault_is_told() -> None:
    """Others follow from it."""
    teller = after(*ONE_REPLACED, "consumer 3 stopped orders-1@1.5, schema_changed")
    teller.tell("consumer 3 stopped orders-0@1.4, transformation_failed")
    assert "orders-1" in roll_out_of(teller).fault


@pytest.mark.parametrize("reason", ["offset_out_of_range", "not_permitted", "log_truncated"])
def test_other_failures_do_not(reason: str) -> None:
    """Kafka's retention and rights are the same for every version."""
    teller = after(*ONE_REPLACED, f"consumer 3 stopped orders-1@1.5, {reason}")
    assert BEGINS_AGAIN not in teller.tell("tick +500")


def test_a_failure_of_an_old_consumer_does_not() -> None:
    """It says nothing about the new version."""
    teller = after(*ONE_REPLACED, "consumer 2 stopped orders-2@1.3, transformation_failed")
    assert BEGINS_AGAIN not in teller.tell("tick +500")


def test_a_partition_that_failed_before_does_not() -> None:
    """The new version is not worse; it may be the next try to mend it."""
    teller = after(
        *TWO_CONSUMERS,
        "consumer 1 stopped orders-1@1.2, transformation_failed",
        *ONE_REPLACED[len(TWO_CONSUMERS) : -3],
        "consumer 1 stopped orders-0@1.1",
        "consumer 3 started orders-0@1.4",
        "consumer 1 is deleted",
        "tick +61000",
        "packed 2: orders-2; 3: orders-0 orders-1",
        "consumer 3 started orders-1@1.5",
        "consumer 3 stopped orders-1@1.5, transformation_failed",
    )
    assert not roll_out_of(teller).fault


def test_a_replacement_that_cannot_be_created_rolls_it_back() -> None:
    """No consumer of the new version is left, so that is all."""
    teller = after(*TWO_CONSUMERS, "request u1: update", "the new deployment works", "tick +500")
    teller.tell("consumer 3 cannot be created: no such image")
    lines = teller.tell("tick +500")
    assert BEGINS_AGAIN in lines
    assert "  > answer u1: failed" in lines
    assert any("rolled back: the replacement of consumer 1 did not" in line for line in lines)


def test_a_roll_back_goes_on_until_none_of_the_failed_version_is_left() -> None:
    """What cannot be created at first is created later."""
    teller = after(*ONE_REPLACED, "consumer 3 stopped orders-1@1.5, schema_changed", "tick +500")
    teller.tell("consumer 1 cannot be created: quota")
    teller.tell("tick +500")
    teller.tell("tick +500")
    assert (roll_out_of(teller).undoes, roll_out_of(teller).replacing) == (1, 3)
    assert "  > create consumer 4 version 2" in teller.tell("tick +10000")


def test_the_next_request_takes_the_place_of_a_roll_back() -> None:
    """It may be the remedy; the former request is answered, and its consumers are replaced too."""
    teller = after(*ONE_REPLACED, "consumer 3 stopped orders-1@1.5, schema_changed", "tick +500")
    lines = teller.tell("request u2: update")
    assert "  > answer u1: failed" in lines
    assert "  > answer u2: accepted" in lines
    assert any("rolled back only in part, by request u2" in line for line in lines)
    assert roll_out_of(teller).version == 3


def test_what_waits_for_another_reason_waits_on() -> None:
    """The end of a roll-back frees only what the failed deployment stopped."""
    teller = after(
        *TWO_CONSUMERS,
        "consumer 2 stopped orders-2@1.3, offset_out_of_range",
        "request u1: update",
        "the new deployment works",
        "tick +500",
        "consumer 3 cannot be created: no such image",
        "tick +500",
    )
    assert teller.state is not None
    assert teller.state.roll_out is None
    assert [str(one) for one in teller.state.parked] == ["orders-2"]


def test_a_lost_replacement_leaves_others_of_the_version_to_replace() -> None:
    """The first new one carries, the second does not come up: the first goes back as well."""
    teller = after(*ONE_REPLACED)
    teller.tell("consumer 3 reports orders-0@1.4 orders-1@1.5, behind_records=0")
    teller.tell("tick +500")
    teller.tell("consumer 1 cannot be created: quota")
    assert BEGINS_AGAIN in teller.tell("tick +500")
    assert roll_out_of(teller).undoes == 1
    teller.tell("tick +10000")
    assert roll_out_of(teller).replacing == 3


def test_a_roll_back_goes_on_after_a_restart() -> None:
    """What was wrong, and the version that is taken back, are saved."""
    teller = after(*ONE_REPLACED, "consumer 3 stopped orders-1@1.5, schema_changed", "tick +500")
    assert teller.state is not None
    read = decode_state(encode_state(teller.state), teller.settings)
    assert isinstance(read, State)
    assert read.roll_out is not None
    assert (read.roll_out.undoes, read.roll_out.version) == (1, 2)
    assert read.roll_out.fault == roll_out_of(teller).fault
    assert read.roll_out.is_tried


def test_an_answer_to_a_trial_that_nobody_waits_for_is_counted() -> None:
    """There is no roll-out, or it was tried already."""
    teller = after(*TWO_CONSUMERS)
    assert teller.tell("the new deployment works") == []
    assert teller.state is not None
    assert teller.state.counts["late_trial"] == 1
