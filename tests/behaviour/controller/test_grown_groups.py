"""A group that grew with its load learns on, and is not fooled by what its consumers share."""

from dataclasses import replace
from typing import Any

import pytest

from kit.controller.imagined_group import MB, ImaginedGroup
from kit.controller.story import Storyteller, after
from kit.controller.story_state import state_of
from kit.controller.two_topics import TWO_TOPICS
from penstock.controller.core.capacity import capacities_of
from penstock.controller.core.carried_samples import CarriedSample
from penstock.controller.core.growth import judge
from penstock.controller.core.load import group_load, usual_capacity
from penstock.controller.core.state import GrowthLimit, GrowthTrial, State
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId

PARTITIONS = 24
FIRST = "consumer 1 reports plain-0@1.1 plain-1@1.2"
BOTH = "consumer 1 reports plain-0@1.1 slow-0@1.3"


class GrowingGroup(ImaginedGroup):
    """Nobody set a number; each consumer is known to carry 2 MB/s. The load can be changed."""

    def __init__(self, **options: Any) -> None:
        self.load_bytes_per_s = 1 * MB
        logs = {f"t-{n}": lambda _: self.load_bytes_per_s / PARTITIONS for n in range(PARTITIONS)}
        super().__init__(logs, packing__capacity="auto", calibrated={"t": 2 * MB}, **options)

    def grown_to(self, megabytes_per_s: int) -> "GrowingGroup":
        """Its load grows step by step, and it keeps up."""
        self.run(30)
        for speed in range(2, megabytes_per_s + 1):
            self.load_bytes_per_s = speed * MB
            self.run(40)
        self.run(60)
        return self

    @property
    def usual_bytes_per_s(self) -> float:
        return usual_capacity(StepDraft(self.state, self.now_ms))


def test_a_grown_group_learns_that_its_consumers_became_slower() -> None:
    """Within a minute, and not after a growth that does not help for ten."""
    group = GrowingGroup().grown_to(7)
    assert group.working == 4
    group.carries_bytes_per_s = 1 * MB
    group.run(60)
    assert group.usual_bytes_per_s == pytest.approx(1 * MB)
    assert group.working >= 7
    group.run(60)
    assert group.behind_bytes < 7 * MB
    assert group.said("growth_did_not_help") == []


@pytest.mark.slow
def test_it_learns_it_again_at_its_new_size() -> None:
    """The size to which it grew by that counts too, after a while."""
    group = GrowingGroup(carries_bytes_per_s=4 * MB).grown_to(5)
    for carries in (1 * MB, 0.5 * MB):
        group.carries_bytes_per_s = carries
        group.run(120)
        assert group.usual_bytes_per_s == pytest.approx(carries)
    assert group.working >= 10
    assert group.said("growth_did_not_help") == []


def test_weak_consumers_of_a_grown_group_are_learned() -> None:
    """Two of four carry half: each is packed by its own capacity, and the others keep theirs."""
    group = GrowingGroup().grown_to(7)
    weak = {ConsumerId(3), ConsumerId(4)}
    group.own_bytes_per_s = dict.fromkeys(weak, 1 * MB)
    group.run(90)
    assert group.usual_bytes_per_s == pytest.approx(2 * MB)
    measured = {c: group.state.consumers[c].capacity_by_topic["t"] for c in weak}
    assert measured == dict.fromkeys(weak, pytest.approx(1 * MB))
    assert all(group.loads().get(consumer, 0.0) <= 1 * MB for consumer in weak)
    assert group.behind_bytes < 7 * MB


@pytest.mark.slow
def test_a_shared_limit_is_found_after_a_growth_with_the_load() -> None:
    """9 MB/s are written and all carry 8 together: more consumers are tried once, and go."""
    group = GrowingGroup(shared_bytes_per_s=8 * MB).grown_to(7)
    group.load_bytes_per_s = 9 * MB
    group.run(240)
    assert len(group.said("growth_did_not_help")) == 1
    assert group.working <= 6
    assert group.usual_bytes_per_s >= 8 * MB / 6
    group.run(240)
    assert group.working <= 6
    assert group.usual_bytes_per_s >= 8 * MB / 6


@pytest.mark.slow
def test_a_limit_that_is_reached_again_and_again_does_not_lower_the_capacity() -> None:
    """In between the group keeps up; what it measured at the limit is contention all the same.

    When every size at which it keeps up counted, it had a consumer for each partition after the
    fourth time.
    """
    group = GrowingGroup(shared_bytes_per_s=8.2 * MB).grown_to(7)
    for _ in range(5):
        group.load_bytes_per_s = 8.4 * MB
        group.run(60)
        group.load_bytes_per_s = 7.4 * MB
        group.run(90)
        assert group.working <= 7
    assert group.usual_bytes_per_s >= 8.2 * MB / 7


def grown(**given: Any) -> int:
    """The size at which figures count then."""
    return grown_state(**given).capacity_size


def grown_state(
    *,
    speeds: str = "speeds plain-0=40 plain-1=40 slow-0=20",
    slowed: tuple[int, ...] = (),
    planned_s_ago: int = 61,
    carried_bytes_per_s: int = 95,
    confirmed_bytes_per_s: float = 50.0,
    capacity_size: int = 1,
    is_settled: bool = True,
    with_a_spare: bool = False,
    **changes: Any,
) -> State:
    """After a look at a group of two that was confirmed with one.

    100 bytes a second are written, and one consumer is known to carry 35.7 of them: less than when
    that size was confirmed.
    """
    teller = after(*TWO_TOPICS, speeds, "120000 ms pass", FIRST, "tick +500")
    state, now_ms = state_of(teller), teller.now_ms
    samples = tuple(
        CarriedSample(now_ms - ago * 1_000, -ago * carried_bytes_per_s, 2) for ago in (50, 25, 0)
    )
    consumers = {
        c: replace(record, is_slowed=int(c) in slowed, behind_by_partition={})
        for c, record in state.consumers.items()
    }
    if with_a_spare:
        consumers[ConsumerId(3)] = consumers[ConsumerId(2)]
    trigger = replace(state.trigger, repacked_at_ms=now_ms - planned_s_ago * 1_000)
    state = replace(
        state,
        consumers=consumers,
        carried_samples=samples,
        trigger=trigger,
        capacity_size=capacity_size,
        confirmed_bytes_per_s=confirmed_bytes_per_s,
    )
    draft = StepDraft(replace(state, **{"growth_trial": None, **changes}), now_ms)
    judge(draft, group_load(draft), is_settled=is_settled)
    return draft.state


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({}, 2),
        ({"slowed": (1,)}, 2),
        ({"slowed": (1, 2)}, 1),
        ({"planned_s_ago": 59}, 1),
        ({"carried_bytes_per_s": 85}, 1),
        ({"is_settled": False}, 1),
        ({"capacity_size": 3}, 3),
        ({"growth_limit": GrowthLimit(2, 10**9, 100.0)}, 1),
        ({"growth_trial": GrowthTrial(1, 2, 50.0, 100.0)}, 1),
    ],
)
def test_when_a_size_counts(given: dict[str, Any], size: int) -> None:
    """It keeps up for a while, nothing is tried, and most measure what is known of them."""
    assert grown(**given) == size


def test_a_size_that_the_smaller_group_did_not_need_does_not_count() -> None:
    """Capacities were lowered at the smaller size: it may be contention that made it grow.

    10 bytes a second are written, and one consumer is known to carry 17.5 of them.
    """
    little: dict[str, Any] = {
        "speeds": "speeds plain-0=4 plain-1=1 slow-0=5",
        "carried_bytes_per_s": 10,
    }
    assert grown(**little, confirmed_bytes_per_s=50.0) == 1
    assert grown(**little, confirmed_bytes_per_s=19.0) == 2


def test_what_is_confirmed_is_size_and_capacity() -> None:
    """Of the consumers that work, and only when the group is larger than before."""
    state = grown_state()
    assert state.confirmed_bytes_per_s == pytest.approx(capacities_of(state).usual_bytes_per_s)
    assert state.confirmed_bytes_per_s < 50.0
    assert grown_state(with_a_spare=True).capacity_size == 2
    same = grown_state(capacity_size=2)
    assert (same.capacity_size, same.confirmed_bytes_per_s) == (2, 50.0)


def test_a_first_plan_is_confirmed() -> None:
    """There is nothing to compare it with."""
    state = state_of(after(*TWO_TOPICS))
    assert state.capacity_size == 2
    assert state.confirmed_bytes_per_s > 0


def is_slowed(*lines: str, own: dict[str, float] | None = None) -> bool:
    """Whether consumer 1 is, in a group that is larger than any at which growth helped."""
    teller = after(*TWO_TOPICS)
    state, one = state_of(teller), ConsumerId(1)
    consumers = {
        **state.consumers,
        one: replace(state.consumers[one], capacity_by_topic=own or {}),
    }
    teller.state = replace(state, capacity_size=1, consumers=consumers)
    return state_after(teller, lines).consumers[ConsumerId(1)].is_slowed


def state_after(teller: Storyteller, lines: tuple[str, ...]) -> State:
    for line in lines:
        teller.tell(line)
    return state_of(teller)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{FIRST}, alone=plain:80", True),
        (f"{FIRST}, alone=plain:95", False),
        (f"{FIRST}, alone=plain:150", False),
        (f"{FIRST}, capacity_log_bytes_per_s=80.0", True),
        (f"{FIRST}, capacity_log_bytes_per_s=95.0", False),
        (f"{FIRST}, at_least_log_bytes_per_s=5.0", False),
        (f"{BOTH}, capacity_log_bytes_per_s=45.0", True),
        (f"{BOTH}, capacity_log_bytes_per_s=54.0", False),
        (FIRST, False),
    ],
)
def test_a_consumer_that_measures_less_than_is_known_of_it_is_slowed(
    line: str, expected: bool
) -> None:
    """Known are 100 of plain and 10 of slow: 55 of both as they are written."""
    assert is_slowed(line) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{FIRST}, alone=plain:40", True),
        (f"{FIRST}, alone=plain:48", False),
        (f"{BOTH}, capacity_log_bytes_per_s=20.0", True),
        (f"{BOTH}, capacity_log_bytes_per_s=27.0", False),
    ],
)
def test_a_weak_consumer_is_compared_with_itself(line: str, expected: bool) -> None:
    """Half of what the others carry is what is known of it."""
    assert is_slowed(line, own={"plain": 50.0, "slow": 5.0}) is expected


def test_a_consumer_recovers() -> None:
    """The newest report counts; and what is learned is what is known."""
    low = f"{FIRST}, alone=plain:80"
    assert not is_slowed(low, f"{FIRST}, alone=plain:100")
    assert not is_slowed(low, FIRST)
    teller = after(*TWO_TOPICS)
    state = state_after(teller, (low,))
    assert not state.consumers[ConsumerId(1)].is_slowed
    assert state.consumers[ConsumerId(1)].capacity_by_topic == {"plain": 80}


def test_the_first_figure_confirms_the_size_of_a_group_that_was_found() -> None:
    """A new controller without a saved state did not see it grow."""
    teller = after(*TWO_TOPICS)
    found = replace(state_of(teller), capacity_size=0, confirmed_bytes_per_s=0.0)
    teller.state = replace(found, growth_trial=None)
    state = state_after(teller, (f"{FIRST}, alone=plain:80",))
    assert (state.capacity_size, state.capacities["plain"].bytes_per_s) == (2, 80)
    assert state.confirmed_bytes_per_s > 0
