"""What people and other programs see of the controller's state."""

import json
from dataclasses import replace

import pytest

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.snapshot import seconds_behind, snapshot


def test_a_group_in_the_middle_of_a_move() -> None:
    """Loads, moves with where they go, and the question the packer would be asked."""
    teller = after(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=10",
        "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=65 behind_records=13",
        "tick +500",
        "packed 1: orders-0; 2: orders-1 orders-2",
        "request p: pause direction=down reason=sale",
    )
    seen = snapshot(state_of(teller), 1_000, is_degraded=False)
    assert json.loads(json.dumps(seen)) == seen
    first = seen["consumers"][0]
    assert (first["load_bytes_per_s"], first["behind_records"]) == (120.0, 13)
    assert seen["behind_s"] == pytest.approx(0.5)
    assert seen["partitions"]["orders-1"]["status"] == "stopping"
    assert seen["moves"] == [
        {"partition": "orders-1", "at": 1, "to": 2, "status": "stopping"},
    ]
    assert seen["pauses"][0]["reason"] == "sale"
    assert seen["question"]["capacity_bytes_per_s"] == pytest.approx(100.0)
    assert set(seen["question"]["current"]) == {"1", "2"}


def test_the_reason_is_that_of_what_is_done_now() -> None:
    """Of the packing while it is asked for, then of its plan; none when the plan is done."""
    steps = (
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=10",
        "tick +500",
    )
    packing = snapshot(state_of(after(*steps)), 0, is_degraded=False)
    assert packing["phase"] == "Reassign"
    assert packing["reason"]["code"] == "over_capacity"
    assert "consumer 1 is over" in packing["reason"]["explanation"]
    teller = after(*steps, "packed 1: orders-0; 2: orders-1 orders-2")
    moving = snapshot(state_of(teller), 0, is_degraded=False)
    assert moving["phase"] == "Group Management"
    assert moving["reason"] == packing["reason"]
    calm = snapshot(state_of(after(*TWO_CONSUMERS)), 0, is_degraded=False)
    assert (calm["phase"], calm["reason"]) == ("Sentinel", None)


def test_what_was_carried_is_counted() -> None:
    """In all and for each consumer: two snapshots give the speed."""
    teller = after(
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1 orders-1@1.2, carried=500",
        "consumer 1 reports orders-0@1.1 orders-1@1.2, carried=700",
    )
    seen = snapshot(state_of(teller), 1_000, is_degraded=False)
    assert seen["carried_bytes"] == 1_200
    assert [one["carried_bytes"] for one in seen["consumers"]] == [1_200, 0]


def test_where_a_consumer_is_in_each_log() -> None:
    """Offsets and what waits, as its newest report says; what is unknown is left out."""
    teller = after(
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1+10/15 orders-1@1.2, behind_log_bytes=65",
    )
    seen = snapshot(state_of(teller), 1_000, is_degraded=False)["partitions"]
    assert seen["orders-0"]["next_offset"] == 10
    assert (seen["orders-0"]["behind_records"], seen["orders-0"]["behind_bytes"]) == (5, 65)
    assert "behind_records" not in seen["orders-1"]
    state = state_of(teller)
    began_again = {c: replace(one, incarnation=99) for c, one in state.consumers.items()}
    later = snapshot(replace(state, consumers=began_again), 1_000, is_degraded=False)
    assert "next_offset" not in later["partitions"]["orders-0"]


def test_a_controller_that_knows_nothing_yet() -> None:
    """No speeds, no consumers, no plan: still a whole answer."""
    seen = snapshot(state_of(after("a controller starts with epoch 1")), 0, is_degraded=True)
    assert seen["is_degraded"]
    assert (seen["consumers"], seen["moves"], seen["partitions"]) == ([], [], {})
    assert seen["measurement_age_ms"] is None


def test_a_roll_out_and_what_was_learned() -> None:
    """Progress of the roll-out; the capacity a consumer has shown in place of the setting."""
    teller = after(
        "settings capacity=auto calibrated.orders=100",
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1 orders-1@1.2, capacity_log_bytes_per_s=70.0",
        "request u1: update",
    )
    seen = snapshot(state_of(teller), 0, is_degraded=False)
    assert seen["roll_out"]["total"] == 2
    assert seen["consumers"][0]["capacity_bytes_per_s"] == 70.0
    assert seen["consumers"][1]["measured_capacity_bytes_per_s"] is None


def test_seconds_behind() -> None:
    """Nothing waits: zero. Something waits and nothing is written: unknown."""
    assert seconds_behind(0, 0) == 0
    assert seconds_behind(100, 50) == 2
    assert seconds_behind(100, 0) is None


def test_a_decision_has_the_same_time_in_every_snapshot() -> None:
    """The clock that is shown, less a decision's age, does not change as the decision ages."""
    teller = after(*TWO_CONSUMERS)
    first = snapshot(state_of(teller), 1_000, is_degraded=False)
    teller = after(*TWO_CONSUMERS, "3000 ms pass", "tick +500")
    later = snapshot(state_of(teller), 9_000, is_degraded=False)
    times = [[one["now_ms"] - d["age_ms"] for d in one["history"]] for one in (first, later)]
    assert times[0]
    assert times[1][: len(times[0])] == times[0]
    assert later["now_ms"] >= first["now_ms"] + 3_000
