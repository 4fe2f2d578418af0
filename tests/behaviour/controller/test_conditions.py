"""What is not well with a group, with its reason; and what waits in every log."""

from dataclasses import replace
from typing import Any

import pytest

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from penstock.controller.core import inputs
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.state import BacklogSample, GrowthLimit, State
from penstock.messages import StopReason
from penstock.model import TopicPartition


def seen(*lines: str, is_degraded: bool = False, **changes: Any) -> dict[str, Any]:
    """What `penstock status` reads of a controller to whom all of this has happened."""
    state = after(*lines).state
    assert state is not None
    return snapshot(replace(state, **changes), 0, is_degraded=is_degraded)


def reasons(status: dict[str, Any]) -> dict[str, str]:
    return {one["condition"]: one["reason"] for one in status["conditions"]}


def test_a_controller_without_measurements_is_blind() -> None:
    """Also when the newest one is old; and it says what to look at."""
    first = reasons(seen("a controller starts with epoch 1"))
    assert first["blind"].startswith("there is no measurement yet: the first one comes some")
    assert "check that `penstock monitor` runs" in first["blind"]
    later = reasons(seen(*TWO_CONSUMERS, "tick +90000"))
    assert later["blind"].startswith("the newest measurement is 1 min 30 s old")


def test_a_partition_that_moves_is_not_called_unread() -> None:
    """It is one when its plan has not placed it after half a minute."""
    lines = (*TWO_CONSUMERS[:6], "tick +1000")
    assert "unread" not in reasons(seen(*lines))
    stuck = reasons(seen(*lines, "tick +31000"))
    assert stuck["unread"] == "nobody reads 3 partitions: orders-0, orders-1, orders-2"


def test_a_stopped_partition_says_why() -> None:
    """With what its consumer said, when it said something; once for all that say the same."""
    teller = after(*TWO_CONSUMERS)
    teller.tell("consumer 1 stopped orders-0@1.1 orders-1@1.2, schema_changed")
    assert teller.state is not None
    partition = TopicPartition("orders", 0)
    parked = dict(teller.state.parked)
    parked[partition] = replace(parked[partition], detail="no module named shop")
    found = snapshot(replace(teller.state, parked=parked), 0, is_degraded=False)
    assert [one["reason"] for one in found["conditions"]] == [
        "orders-1: schema_changed",
        "orders-0: schema_changed: no module named shop",
    ]
    assert found["parked_details"] == {"orders-0": "no module named shop"}


def noted(*carried_and_records: tuple[int, int]) -> tuple[BacklogSample, ...]:
    """What was carried in all and what waited, noted every five seconds; records of 10 bytes."""
    return tuple(
        BacklogSample(5_000 * place, carried, records, 10.0 * records)
        for place, (carried, records) in enumerate(carried_and_records)
    )


def test_a_group_that_carries_less_than_is_written_falls_behind() -> None:
    """Both speeds and what waits are in the reason; a group that carries enough is well."""
    logs = "logs orders-0=0..9000 orders-1=0..9000 orders-2=0..9000"
    grows = noted(*((100 * place, 26_000 + 50 * place) for place in range(9)))
    lines = (*TWO_CONSUMERS, logs, "speeds orders-0=40 orders-1=40 orders-2=40")
    found = seen(*lines, backlog_samples=grows)
    assert reasons(found)["falling behind"] == (
        "120 B/s are written and 20 B/s carried, in the last 35 s; at most 27,000 records wait"
    )
    waits_for = "consumer 2 reports orders-2@1.3, waits_for=lake"
    assert reasons(seen(*lines, waits_for, backlog_samples=grows))["falling behind"].endswith(
        " records wait; consumer 2 waits for the lake"
    )
    enough = tuple(replace(one, carried_bytes=6 * one.carried_bytes) for one in grows)
    assert "falling behind" not in reasons(seen(*lines, backlog_samples=enough))
    shrinks = tuple(replace(one, records=26_000 - one.at_ms // 100) for one in grows)
    assert "falling behind" not in reasons(seen(*lines, backlog_samples=shrinks))
    assert "falling behind" not in reasons(seen(*lines, backlog_samples=grows[:6]))
    assert "falling behind" not in reasons(seen(*TWO_CONSUMERS, backlog_samples=grows))


def test_little_that_waits_is_no_condition() -> None:
    """What is written within `controller.behind_tolerated` may wait."""
    one = "consumer 1 reports orders-0@1.1+9/10 orders-1@1.2, behind_log_bytes=1 behind_records=1"
    little = noted(*((0, place) for place in range(9)))
    assert "falling behind" not in reasons(seen(*TWO_CONSUMERS, one, backlog_samples=little))
    much = noted(*((0, 9_000 * place) for place in range(9)))
    assert "falling behind" in reasons(seen(*TWO_CONSUMERS, one, backlog_samples=much))


def test_a_group_at_its_maximum_with_too_much_load() -> None:
    """The bound is named, with the load and what the consumers carry."""
    speeds = "speeds orders-0=90 orders-1=90 orders-2=90"
    found = reasons(seen("settings consumers_max=2", *TWO_CONSUMERS, speeds))
    assert found["at maximum"] == (
        "2 of 2 consumers (controller.consumers_max) work, with 270 of 200 B/s: raise it, or "
        "packing.capacity"
    )
    carried = "speeds orders-0=20 orders-1=20 orders-2=20"
    assert "at maximum" not in reasons(seen("settings consumers_max=2", *TWO_CONSUMERS, carried))


def test_a_partition_that_no_consumer_can_carry() -> None:
    """It is a condition of its own: more consumers would not help."""
    found = reasons(seen(*TWO_CONSUMERS, "speeds orders-0=40 orders-1=40 orders-2=300"))
    assert found["oversize"].startswith("orders-2: faster than one consumer carries (100 B/s)")


def test_what_holds_the_group_is_said() -> None:
    """A pause, a failed creation, growth that did not help and a state that cannot be saved."""
    paused = seen(*TWO_CONSUMERS, "request p: pause direction=down reason=sale")
    assert reasons(paused) == {"held": "paused (down): sale"}
    until = "request p: pause direction=up until_unix_ms=4102444800000"
    ends = reasons(seen(*TWO_CONSUMERS, until))["held"]
    assert ends == "paused (up) until 2100-01-01 00:00:00 UTC: no reason given"
    blocked = seen(*TWO_CONSUMERS, creation_blocked_until_ms=10**9)
    assert reasons(blocked)["held"].endswith("the last one failed")
    failed = (*TWO_CONSUMERS[:6], "consumer 1 cannot be created: no room")
    named = reasons(seen(*failed, creation_blocked_until_ms=10**9))["held"]
    assert named == "no consumer is created for now: consumer 1: no room"
    limit = GrowthLimit(3, 60_000, 100.0)
    held = reasons(seen(*TWO_CONSUMERS, growth_limit=limit))["held"]
    assert held == "growth did not help: at most 3 consumers for 59 s, or until the load changes"
    assert "unsaved" in reasons(seen(*TWO_CONSUMERS, is_degraded=True))


def test_consumers_that_are_silent_together_hold_the_group() -> None:
    """The consumers and the time are named."""
    lines = (*TWO_CONSUMERS, "the controller hears itself for 9000 ms")
    held = reasons(seen(*lines))["held"]
    assert held.startswith("held by silence for")
    assert held.endswith("consumers 1, 2 are silent or late")


# What waits


def waits(*lines: str) -> tuple[int, int | None, bool]:
    found = seen(*lines)
    return found["behind_records"], found["behind_bytes"], found["behind_is_at_most"]


SPEEDS = "speeds orders-0=40 orders-1=40 orders-2=40"
LOGS = "logs orders-0=0..100 orders-1=0..100 orders-2=20..100"


def test_a_report_says_it_best() -> None:
    """What a consumer reports is not counted a second time from the log."""
    first = "consumer 1 reports orders-0@1.1+90/100 orders-1@1.2+95/100, behind_records=15"
    second = "consumer 2 reports orders-2@1.3+100/100, behind_records=0"
    assert waits(*TWO_CONSUMERS, LOGS, SPEEDS, first, second)[0] == 15


def test_a_partition_whose_end_its_consumer_does_not_know_is_counted_from_the_log() -> None:
    """The consumer knows the offset, and the monitor the end."""
    first = "consumer 1 reports orders-0@1.1+90/100 orders-1@1.2+95, behind_records=10"
    second = "consumer 2 reports orders-2@1.3+100/100"
    assert waits(*TWO_CONSUMERS, LOGS, SPEEDS, first, second) == (15, 50, False)


def test_a_started_partition_counts_from_the_offset_it_started_at() -> None:
    """Until its consumer reports."""
    started = (
        "consumer 1 started orders-0@1.1+90 orders-1@1.2+80",
        "consumer 2 started orders-2@1.3+100",
    )
    assert waits(*TWO_CONSUMERS[:-2], *started, LOGS, SPEEDS) == (30, 300, False)


def test_a_silent_consumer_falls_behind_with_the_log() -> None:
    """Its old report said 0, and the log has grown since."""
    first = "consumer 1 reports orders-0@1.1+100/100 orders-1@1.2+100/100, behind_records=0"
    second = "consumer 2 reports orders-2@1.3+100/100, behind_records=0"
    grown = "logs orders-0=0..600 orders-1=0..100 orders-2=20..100"
    lines = (*TWO_CONSUMERS, LOGS, SPEEDS, first, second, "60000 ms pass", grown, SPEEDS)
    assert waits(*lines)[0] == 500


def test_what_retention_removed_waits_no_more() -> None:
    """The ledger stands at 10, and the log begins at 20."""
    stop = "consumer 2 stopped orders-2@1.3+10, schema_changed"
    others = "consumer 1 reports orders-0@1.1+100/100 orders-1@1.2+100/100"
    assert waits(*TWO_CONSUMERS, LOGS, SPEEDS, others, stop)[0] == 80


def test_an_offset_beyond_the_log_is_of_another_log() -> None:
    """The topic was made again: all of the new log waits, at most."""
    stop = "consumer 2 stopped orders-2@1.3+900, topic_deleted"
    others = "consumer 1 reports orders-0@1.1+100/100 orders-1@1.2+100/100"
    assert waits(*TWO_CONSUMERS, LOGS, SPEEDS, others, stop) == (80, 800, True)


def test_a_log_whose_end_is_unknown_is_counted_as_unknown() -> None:
    """Nobody has the partitions, and no end was measured: that is not 0."""
    found = seen(*TWO_CONSUMERS[:4], "tick +500")
    assert (found["behind_records"], found["behind_unknown"]) == (0, 3)


def test_a_measurement_without_ends_keeps_the_last_known_ones() -> None:
    """A partition that one measurement leaves out is still counted."""
    teller = after(*TWO_CONSUMERS[:3], LOGS, SPEEDS)
    teller.logs = {}
    teller.tell(SPEEDS)
    assert teller.state is not None
    assert snapshot(teller.state, 0, is_degraded=False)["behind_records"] == 280


@pytest.mark.parametrize("reason", [StopReason.COMMANDED, StopReason.SCHEMA_CHANGED])
def test_a_new_controller_knows_the_offsets_of_what_nobody_reads(reason: StopReason) -> None:
    """They are saved, because no consumer can tell them."""
    state = after(*TWO_CONSUMERS, f"consumer 2 stopped orders-2@1.3+90, {reason.value}").state
    assert state is not None
    read = decode_state(encode_state(state), CATALOGUE)
    assert isinstance(read, State)
    assert read.ledger_offsets == {TopicPartition("orders", 2): 90}


def test_a_vanished_or_remade_partition_is_forgotten() -> None:
    """Its offset says nothing about a later partition of that name."""
    stop = "consumer 2 stopped orders-2@1.3+90, schema_changed"
    gone = ["speeds orders-0=40 orders-1=40"] * 5
    state = after(*TWO_CONSUMERS, stop, *gone).state
    assert state is not None
    assert TopicPartition("orders", 2) not in state.ledger_offsets
    teller = after(*TWO_CONSUMERS, stop, "consumer 1 stopped orders-1@1.2+7, schema_changed")
    for topic_id in ("first", "second"):
        speeds = {TopicPartition("orders", number): 40.0 for number in range(3)}
        ids = {"orders": topic_id}
        teller.give(inputs.SpeedsMeasured(teller.now_ms, speeds, topic_ids=ids))
    assert teller.state is not None
    assert not teller.state.ledger_offsets
