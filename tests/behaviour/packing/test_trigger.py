"""The trigger: when it repacks, and when it does not."""

from dataclasses import replace

import pytest

from kit.packing.packing_cases import named
from penstock.controller.core.settings import controller_settings
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import DEFAULT
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    Reason,
    TriggerDecision,
    TriggerMemory,
    after_repack,
    decide,
    load_of_assignment,
    problem_for,
    try_again,
)
from penstock.packing.worthwhile import is_worthwhile
from penstock.settings import Settings

POLICY = replace(
    controller_settings(Settings()).policy,
    capacity_bytes_per_s=100,
    target_utilisation=0.8,
    over_capacity_ms=0,
)
ONE, TWO, THREE = ConsumerId(1), ConsumerId(2), ConsumerId(3)
FRESH = TriggerMemory()


def speeds(*values: float) -> dict[TopicPartition, float]:
    return {named(number): value for number, value in enumerate(values)}


def held(*consumers: list[int]) -> Assignment:
    return Assignment(
        {ConsumerId(n): [named(p) for p in parts] for n, parts in enumerate(consumers, start=1)}
    )


def reason(values: dict[TopicPartition, float], assignment: Assignment, now_ms: int = 0) -> Reason:
    return decide(POLICY, FRESH, load_of_assignment(POLICY, values, assignment), now_ms)[1].reason


def test_calm_while_the_load_is_carried() -> None:
    """A load between the packing capacity and the full capacity triggers nothing."""
    assert reason(speeds(50, 45), held([0, 1])) is Reason.CALM


def test_a_consumer_over_its_capacity_raises_the_alarm() -> None:
    """More than it carries, at once."""
    memory, decision = decide(
        POLICY, FRESH, load_of_assignment(POLICY, speeds(60, 45), held([0, 1])), 7_000
    )
    assert (decision.reason, decision.repack) == (Reason.OVER_CAPACITY, True)
    assert decision.explanation == "consumer 1 is over capacity: 105 of 100 B/s"
    assert memory.over_since_ms == {ONE: 7_000}


def test_several_consumers_over_capacity_are_named_with_their_figures() -> None:
    """Each with its load and its capacity, in a unit that fits."""
    policy = replace(POLICY, capacity_bytes_per_s=2e6)
    group = load_of_assignment(policy, speeds(2e6, 1e6, 1.5e6, 1.2e6), held([0, 1], [2, 3]))
    _, decision = decide(policy, FRESH, group, 0)
    expected = "consumers are over capacity: 1 (3 of 2 MB/s), 2 (2.7 of 2 MB/s)"
    assert decision.explanation == expected


def test_a_group_above_its_maximum_is_repacked() -> None:
    """Also when every consumer is within its capacity; one that could not be helped waits."""
    policy = replace(POLICY, consumers_max=1)
    group = load_of_assignment(policy, speeds(10, 10), held([0], [1]))
    _, decision = decide(policy, FRESH, group, 0)
    assert decision.reason is Reason.OVER_MAXIMUM
    assert decision.explanation == "2 consumers have partitions, the maximum is 1"
    memory = after_repack(FRESH, Reason.OVER_MAXIMUM, 0, changed=False)
    assert decide(policy, memory, group, 14_999)[1].reason is Reason.CALM
    assert decide(policy, try_again(memory), group, 0)[1].reason is Reason.OVER_MAXIMUM


def test_over_capacity_may_have_to_last() -> None:
    """With a wait set, the alarm is raised only when it has lasted."""
    patient = replace(POLICY, over_capacity_ms=10_000)
    memory, decision = decide(
        patient, FRESH, load_of_assignment(POLICY, speeds(60, 45), held([0, 1])), 0
    )
    assert not decision.repack
    memory, decision = decide(
        patient, memory, load_of_assignment(POLICY, speeds(10, 45), held([0, 1])), 5_000
    )
    memory, decision = decide(
        patient, memory, load_of_assignment(POLICY, speeds(60, 45), held([0, 1])), 9_000
    )
    assert not decision.repack, "it was within its capacity in between"
    _, decision = decide(
        patient, memory, load_of_assignment(POLICY, speeds(60, 45), held([0, 1])), 19_000
    )
    assert decision.reason is Reason.OVER_CAPACITY


def test_one_partition_alone_is_never_an_alarm() -> None:
    """A single oversize partition triggers nothing, because no packing helps."""
    assert reason(speeds(150), held([0])) is Reason.CALM


def test_what_nobody_reads_and_what_is_gone() -> None:
    """A new partition and a vanished one each ask for a repacking."""
    assert reason(speeds(10, 10), held([0])) is Reason.UNREAD_PARTITION
    assert reason(speeds(10), held([0, 1])) is Reason.PARTITION_VANISHED


def test_fewer_consumers_are_looked_for_on_a_slow_timer() -> None:
    """Scale-down is tried once per period, and not before the first period is over."""
    spread = held([0], [1])
    memory, decision = decide(POLICY, FRESH, load_of_assignment(POLICY, speeds(10, 10), spread), 0)
    assert decision.reason is Reason.CALM
    memory, decision = decide(
        POLICY, memory, load_of_assignment(POLICY, speeds(10, 10), spread), 299_000
    )
    assert decision.reason is Reason.CALM
    memory, decision = decide(
        POLICY, memory, load_of_assignment(POLICY, speeds(10, 10), spread), 300_000
    )
    assert decision.reason is Reason.FEWER_WOULD_DO
    _, decision = decide(
        POLICY, memory, load_of_assignment(POLICY, speeds(10, 10), spread), 301_000
    )
    assert decision.reason is Reason.CALM


def test_no_look_where_no_fewer_could_do() -> None:
    """The lower bound at the packing capacity says it without packing."""
    memory = TriggerMemory(looked_for_fewer_at_ms=0)
    _, decision = decide(
        POLICY, memory, load_of_assignment(POLICY, speeds(50, 45), held([0], [1])), 1_000_000
    )
    assert decision.reason is Reason.CALM
    assert decision.explanation == "2 consumers at least must carry the load: 95 of 200 B/s"


def test_a_minimum_gain_is_asked_of_what_nothing_forces() -> None:
    """A scale-down must save enough consumers; a repair is always worthwhile."""
    policy = replace(POLICY, consumers_saved_min=2)
    fewer = Reason.FEWER_WOULD_DO
    group = load_of_assignment(policy, speeds(10, 10, 10), held([0], [1], [2]))
    assert not is_worthwhile(policy, group, fewer, held([0, 1], [2]))
    assert is_worthwhile(policy, group, fewer, held([0, 1, 2]))
    assert is_worthwhile(policy, group, Reason.OVER_CAPACITY, held([0, 1], [2]))
    assert is_worthwhile(policy, group, Reason.UNREAD_PARTITION, held([0, 1], [2]))
    assert not is_worthwhile(policy, group, Reason.CALM, held([0, 1], [2]))


def test_a_repack_that_leaves_an_overload_must_relieve_it() -> None:
    """With too few consumers for the load, partitions do not move from one full one to the next."""
    over = Reason.OVER_CAPACITY
    group = load_of_assignment(POLICY, speeds(80, 70, 75, 72, 400), held([0, 1], [2, 3], [4]))
    assert not is_worthwhile(POLICY, group, over, held([0, 3], [2, 1], [4])), "152 for 150"
    assert not is_worthwhile(POLICY, group, over, held([1, 2], [0, 3], [4])), "152 for 150"
    uneven = load_of_assignment(POLICY, speeds(80, 70, 75, 72), held([0, 1, 3], [2]))
    assert is_worthwhile(POLICY, uneven, over, held([0, 1], [2, 3])), "150 for 222"
    assert is_worthwhile(POLICY, uneven, over, held([0], [1], [2], [3])), "nobody is over"


def test_a_consumer_between_the_two_capacities_is_unchanged() -> None:
    """Packed to 80 of 100, a consumer at 95 keeps its partitions and gets no more."""
    assignment = held([0, 1], [2, 3], [4])
    question = problem_for(
        POLICY,
        load_of_assignment(POLICY, speeds(50, 45, 60, 45, 20), assignment),
        Reason.OVER_CAPACITY,
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
    group = load_of_assignment(POLICY, speeds(60, 60), held([0, 1]))
    assert decide(POLICY, memory, group, 14_999)[1].reason is Reason.CALM
    assert decide(POLICY, memory, group, 15_000)[1].reason is Reason.OVER_CAPACITY
    memory = after_repack(memory, over, 10_000, changed=True)
    assert decide(POLICY, memory, group, 13_000)[1].reason is Reason.OVER_CAPACITY


def test_two_repacks_are_some_time_apart() -> None:
    """Unless a partition has no reader: that is never made to wait."""
    memory = after_repack(FRESH, Reason.OVER_CAPACITY, 10_000, changed=True)
    group = load_of_assignment(POLICY, speeds(60, 60), held([0, 1]))
    too_soon = TriggerDecision(Reason.CALM, "the last plan was made less than 3 s ago")
    assert decide(POLICY, memory, group, 12_999)[1] == too_soon
    assert decide(POLICY, memory, group, 13_000)[1].reason is Reason.OVER_CAPACITY
    unread = load_of_assignment(POLICY, speeds(60, 60), held([0]))
    assert decide(POLICY, memory, unread, 10_000)[1].reason is Reason.UNREAD_PARTITION


def test_an_old_measurement_is_no_reason_for_a_move() -> None:
    """Neither up nor down, and its age is told; what nobody reads is still seen to."""
    group = replace(load_of_assignment(POLICY, speeds(60, 60), held([0, 1])), is_fresh=False)
    for ms_ago, why in (
        (12_340, "the last measurement is 12.3 s old, too old to act on"),
        (None, "nothing is measured yet"),
    ):
        calm = TriggerDecision(Reason.CALM, why)
        assert decide(POLICY, FRESH, replace(group, measured_ms_ago=ms_ago), 0)[1] == calm
    unread = replace(group, unread=(named(7),))
    assert decide(POLICY, FRESH, unread, 0)[1].reason is Reason.UNREAD_PARTITION


def test_a_group_that_is_behind_is_not_made_smaller() -> None:
    """And looks again as soon as it has caught up, not a period later."""
    memory = TriggerMemory(looked_for_fewer_at_ms=0)
    caught_up = load_of_assignment(POLICY, speeds(10, 10), held([0], [1]))
    memory, decision = decide(POLICY, memory, replace(caught_up, is_behind=True), 300_000)
    assert decision.reason is Reason.CALM
    assert decide(POLICY, memory, caught_up, 301_000)[1].reason is Reason.FEWER_WOULD_DO


def test_a_group_that_has_caught_up_looks_for_fewer_at_once() -> None:
    """What it grew for is over; but it must know the highest speeds of a whole period."""
    group = load_of_assignment(POLICY, speeds(10, 10), held([0], [1]))
    behind = replace(group, is_behind=True)
    for began_ms, expected in ((0, Reason.FEWER_WOULD_DO), (350_000, Reason.CALM)):
        memory = TriggerMemory(began_ms=began_ms, looked_for_fewer_at_ms=395_000)
        memory, _ = decide(POLICY, memory, behind, 400_000)
        assert decide(POLICY, memory, group, 410_000)[1].reason is expected


def test_fewer_consumers_must_carry_the_highest_speeds() -> None:
    """70 and 60 lately need two consumers, though 10 and 10 now would do with one."""
    memory = TriggerMemory(looked_for_fewer_at_ms=0)
    group = load_of_assignment(POLICY, speeds(10, 10), held([0], [1]))
    assert decide(POLICY, memory, group, 300_000)[1].reason is Reason.FEWER_WOULD_DO
    burst = replace(group, highest_bytes_per_s=speeds(70, 60))
    assert decide(POLICY, memory, burst, 300_000)[1].reason is Reason.CALM
    question = problem_for(POLICY, burst, Reason.FEWER_WOULD_DO)
    assert question.load_bytes_per_s == speeds(70, 60)
    assert problem_for(POLICY, burst, Reason.OVER_CAPACITY).load_bytes_per_s == speeds(10, 10)


def test_an_overload_of_the_moment_is_no_reason_to_grow() -> None:
    """It counts only with speeds that last."""
    lasting = load_of_assignment(POLICY, speeds(60, 30), held([0, 1]))
    moment = replace(lasting, load_by_consumer={ONE: 900.0})
    assert decide(POLICY, FRESH, moment, 0)[1].reason is Reason.CALM


def test_each_consumer_has_its_own_capacity() -> None:
    """Overload, packing and scale-down use each consumer's own capacity."""
    group = replace(
        load_of_assignment(POLICY, speeds(30, 30, 60), held([0, 1], [2])),
        capacity_by_consumer={ONE: 50.0, TWO: 200.0, THREE: 100.0},
    )
    assert decide(POLICY, FRESH, group, 0)[1].reason is Reason.OVER_CAPACITY
    question = problem_for(POLICY, group, Reason.OVER_CAPACITY)
    assert [question.capacity_of(c) for c in (ONE, TWO, THREE)] == [40.0, 160.0, 80.0]
    calm = replace(group, capacity_by_consumer={ONE: 70.0, TWO: 200.0})
    memory = TriggerMemory(looked_for_fewer_at_ms=0)
    expected = "1 consumer may do instead of 2: 120 of 200 B/s"
    assert decide(POLICY, memory, calm, 300_000)[1].explanation == expected


def test_looking_in_vain_for_fewer_does_not_delay_a_repair() -> None:
    """The two have their own timers."""
    memory = after_repack(FRESH, Reason.FEWER_WOULD_DO, 0, changed=False)
    assert decide(POLICY, memory, load_of_assignment(POLICY, speeds(60, 60), held([0, 1])), 1_000)[
        1
    ].repack


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity_bytes_per_s": 0},
        {"capacity_bytes_per_s": float("nan")},
        {"target_utilisation": 0},
        {"target_utilisation": 1.1},
        {"scale_down_period_ms": -1},
        {"over_capacity_ms": float("inf")},
        {"consumers_saved_min": 0},
        {"relief_min": 1},
    ],
)
def test_a_wrong_policy_is_refused(wrong: dict[str, float]) -> None:
    """A policy with a number outside its range is refused."""
    with pytest.raises(ValueError, match="got"):
        replace(POLICY, **wrong)  # type: ignore[arg-type]  # the wrong value is the test


def test_a_partition_seen_once_has_no_trend() -> None:
    """A partition measured once is forecast at its present speed."""
    trend = observe(Trend(), speeds(10), 0)
    trend = observe(trend, speeds(20, 7), 10_000)
    ahead = forecast(trend, 60_000)
    assert ahead[named(0)] > 20
    assert ahead[named(1)] == 7


def test_a_dear_topic_counts_more_and_is_told_in_real_bytes() -> None:
    """Loads are weighted by topic; a person reads what is written of what is carried of it."""
    loads = {TopicPartition("dear", n): 20.0 for n in range(2)} | {TopicPartition("t", 0): 0.0}
    assignment = Assignment({ConsumerId(1): list(loads), ConsumerId(2): []})
    group = load_of_assignment(POLICY, loads, assignment, None, {"dear": 3.0})
    assert group.load_by_consumer == {1: 120.0}
    assert group.weight_by_consumer == {1: 3.0}
    _, decision = decide(replace(POLICY, over_capacity_ms=0), FRESH, group, 0)
    assert decision.reason is Reason.OVER_CAPACITY
    assert "40 of 33.3" in decision.explanation
    memory = remember(SpeedMemory(), loads, 0, 0, 0)
    weighted = load_of_assignment(POLICY, loads, assignment, memory, {"dear": 3.0})
    assert sum(weighted.load_bytes_per_s.values()) == 120.0
    assert sum(weighted.highest_bytes_per_s.values()) == 120.0
    idle = load_of_assignment(POLICY, dict.fromkeys(loads, 0.0), assignment, None, {"dear": 3.0})
    assert idle.weight_by_consumer == {}
