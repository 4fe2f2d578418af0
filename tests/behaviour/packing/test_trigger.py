"""The trigger: when it repacks, and when it does not."""

from dataclasses import replace

import pytest

from kit.packing.packing_cases import named
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import DEFAULT, Packing
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    Reason,
    TriggerMemory,
    TriggerPolicy,
    after_repack,
    decide,
    is_worthwhile,
    problem_for,
    view_of,
)

POLICY = TriggerPolicy(capacity_bytes_per_s=100, hysteresis=0.2, scale_down_period_s=300)
ONE, TWO, THREE = ConsumerId(1), ConsumerId(2), ConsumerId(3)
FRESH = TriggerMemory()


def speeds(*values: float) -> dict[TopicPartition, float]:
    return {named(number): value for number, value in enumerate(values)}


def held(*consumers: list[int]) -> Assignment:
    return Assignment(
        {ConsumerId(n): [named(p) for p in parts] for n, parts in enumerate(consumers, start=1)}
    )


def reason(values: dict[TopicPartition, float], assignment: Assignment, now_s: float = 0) -> Reason:
    return decide(POLICY, FRESH, view_of(POLICY, values, assignment), now_s)[1].reason


def test_calm_while_the_load_is_carried() -> None:
    """A load between the packing capacity and the full capacity triggers nothing."""
    assert reason(speeds(50, 45), held([0, 1])) is Reason.CALM


def test_a_consumer_over_its_capacity_raises_the_alarm() -> None:
    """A consumer over capacity triggers a repack at once."""
    memory, verdict = decide(POLICY, FRESH, view_of(POLICY, speeds(60, 45), held([0, 1])), 7)
    assert (verdict.reason, verdict.repack) == (Reason.OVER_CAPACITY, True)
    assert "consumers 1 carry" in verdict.explanation
    assert memory.over_since_s == {ONE: 7}


def test_over_capacity_may_have_to_last() -> None:
    """With a wait set, an overload must last that long."""
    patient = replace(POLICY, over_capacity_s=10)
    memory, verdict = decide(patient, FRESH, view_of(POLICY, speeds(60, 45), held([0, 1])), 0)
    assert not verdict.repack
    memory, verdict = decide(patient, memory, view_of(POLICY, speeds(10, 45), held([0, 1])), 5)
    memory, verdict = decide(patient, memory, view_of(POLICY, speeds(60, 45), held([0, 1])), 9)
    assert not verdict.repack, "it was within its capacity in between"
    _, verdict = decide(patient, memory, view_of(POLICY, speeds(60, 45), held([0, 1])), 19)
    assert verdict.reason is Reason.OVER_CAPACITY


def test_one_partition_alone_is_never_an_alarm() -> None:
    """A single oversize partition triggers nothing, because no packing helps."""
    assert reason(speeds(150), held([0])) is Reason.CALM


def test_new_and_deleted_partitions_trigger() -> None:
    """A new and a deleted partition each trigger a repack."""
    assert reason(speeds(10, 10), held([0])) is Reason.UNASSIGNED_PARTITION
    assert reason(speeds(10), held([0, 1])) is Reason.PARTITION_VANISHED


def test_fewer_consumers_are_looked_for_on_a_slow_timer() -> None:
    """Scale-down is tried once per period, and not before the first period is over."""
    spread = held([0], [1])
    memory, verdict = decide(POLICY, FRESH, view_of(POLICY, speeds(10, 10), spread), 0)
    assert verdict.reason is Reason.CALM
    memory, verdict = decide(POLICY, memory, view_of(POLICY, speeds(10, 10), spread), 299)
    assert verdict.reason is Reason.CALM
    memory, verdict = decide(POLICY, memory, view_of(POLICY, speeds(10, 10), spread), 300)
    assert verdict.reason is Reason.FEWER_CONSUMERS
    _, verdict = decide(POLICY, memory, view_of(POLICY, speeds(10, 10), spread), 301)
    assert verdict.reason is Reason.CALM


def test_no_look_where_no_fewer_could_do() -> None:
    """No scale-down is tried if the lower bound shows that none is possible."""
    memory = TriggerMemory(looked_for_fewer_at_s=0)
    _, verdict = decide(POLICY, memory, view_of(POLICY, speeds(50, 45), held([0], [1])), 1000)
    assert verdict.reason is Reason.CALM
    assert "no fewer than 2" in verdict.explanation


def test_a_minimum_gain_is_asked_of_what_nothing_forces() -> None:
    """A scale-down must save enough consumers; a repair is always worthwhile."""
    policy = replace(POLICY, consumers_saved_min=2)
    fewer = Reason.FEWER_CONSUMERS
    two, three = Packing(held([0, 1], [2])), held([0], [1], [2])
    assert not is_worthwhile(policy, fewer, three, two)
    assert is_worthwhile(policy, fewer, three, Packing(held([0, 1, 2])))
    assert is_worthwhile(policy, Reason.OVER_CAPACITY, three, two)
    assert not is_worthwhile(policy, Reason.CALM, three, two)


def test_a_consumer_between_the_two_capacities_is_unchanged() -> None:
    """Packed to 80 of 100, a consumer at 95 keeps its partitions and gets no more."""
    assignment = held([0, 1], [2, 3], [4])
    question = problem_for(
        POLICY, view_of(POLICY, speeds(50, 45, 60, 45, 20), assignment), assignment
    )
    assert question.capacity_of(ONE) >= 95
    assert question.capacity_of(TWO) == 80
    after = DEFAULT.pack(question).assignment
    assert after[ONE] == assignment[ONE]
    assert after.owner_of(named(2)) == TWO
    assert after.owner_of(named(3)) == THREE


def test_a_repair_without_effect_waits_before_the_next() -> None:
    """After a repack without effect the next one waits, unless something changes."""
    over = Reason.OVER_CAPACITY
    memory = after_repack(FRESH, over, 0, changed=False)
    group = view_of(POLICY, speeds(60, 60), held([0, 1]))
    assert decide(POLICY, memory, group, 14)[1].reason is Reason.CALM
    assert decide(POLICY, memory, group, 15)[1].reason is Reason.OVER_CAPACITY
    memory = after_repack(memory, over, 10, changed=True)
    assert decide(POLICY, memory, group, 13)[1].reason is Reason.OVER_CAPACITY


def test_two_repacks_are_some_time_apart() -> None:
    """Two repacks are some time apart, except for a partition without a reader."""
    memory = after_repack(FRESH, Reason.OVER_CAPACITY, 10, changed=True)
    group = view_of(POLICY, speeds(60, 60), held([0, 1]))
    assert decide(POLICY, memory, group, 12.9)[1].reason is Reason.CALM
    assert decide(POLICY, memory, group, 13)[1].reason is Reason.OVER_CAPACITY
    unread = view_of(POLICY, speeds(60, 60), held([0]))
    assert decide(POLICY, memory, unread, 10)[1].reason is Reason.UNASSIGNED_PARTITION


def test_an_old_measurement_is_no_reason_for_a_move() -> None:
    """An old measurement triggers only the assignment of unread partitions."""
    group = replace(view_of(POLICY, speeds(60, 60), held([0, 1])), is_fresh=False)
    assert decide(POLICY, FRESH, group, 0)[1].reason is Reason.CALM
    unread = replace(group, unread=(named(7),))
    assert decide(POLICY, FRESH, unread, 0)[1].reason is Reason.UNASSIGNED_PARTITION


def test_a_group_that_is_behind_is_not_made_smaller() -> None:
    """A group with a backlog is not scaled down, and is checked as soon as it has caught up."""
    memory = TriggerMemory(looked_for_fewer_at_s=0)
    caught_up = view_of(POLICY, speeds(10, 10), held([0], [1]))
    memory, verdict = decide(POLICY, memory, replace(caught_up, is_behind=True), 300)
    assert verdict.reason is Reason.CALM
    assert decide(POLICY, memory, caught_up, 301)[1].reason is Reason.FEWER_CONSUMERS


def test_each_consumer_has_its_own_capacity() -> None:
    """Overload, packing and scale-down use each consumer's own capacity."""
    group = replace(
        view_of(POLICY, speeds(30, 30, 60), held([0, 1], [2])),
        capacity_by_consumer={ONE: 50.0, TWO: 200.0, THREE: 100.0},
    )
    assert decide(POLICY, FRESH, group, 0)[1].reason is Reason.OVER_CAPACITY
    question = problem_for(POLICY, group, held([0, 1], [2]))
    assert [question.capacity_of(c) for c in (ONE, TWO, THREE)] == [40.0, 160.0, 80.0]
    calm = replace(group, capacity_by_consumer={ONE: 70.0, TWO: 200.0})
    memory = TriggerMemory(looked_for_fewer_at_s=0)
    assert decide(POLICY, memory, calm, 300)[1].explanation == "1 consumers may do instead of 2"


def test_a_failed_scale_down_does_not_delay_a_repair() -> None:
    """A scale-down without result does not delay a repair."""
    memory = after_repack(FRESH, Reason.FEWER_CONSUMERS, 0, changed=False)
    assert decide(POLICY, memory, view_of(POLICY, speeds(60, 60), held([0, 1])), 1)[1].repack


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity_bytes_per_s": 0},
        {"capacity_bytes_per_s": float("nan")},
        {"hysteresis": 1},
        {"hysteresis": -0.1},
        {"scale_down_period_s": -1},
        {"over_capacity_s": float("inf")},
        {"consumers_saved_min": 0},
    ],
)
def test_a_wrong_policy_is_refused(wrong: dict[str, float]) -> None:
    """A policy with a number outside its range is refused."""
    with pytest.raises(ValueError, match="got"):
        TriggerPolicy(**{"capacity_bytes_per_s": 100, **wrong})  # type: ignore[arg-type]  # the wrong value is the test


def test_a_partition_seen_once_has_no_trend() -> None:
    """A partition measured once is forecast at its present speed."""
    trend = observe(Trend(), speeds(10), 0)
    trend = observe(trend, speeds(20, 7), 10)
    ahead = forecast(trend, 60)
    assert ahead[named(0)] > 20
    assert ahead[named(1)] == 7
