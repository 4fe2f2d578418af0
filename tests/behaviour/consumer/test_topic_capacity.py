"""A consumer of several topics shows what each costs, by batches of one of them alone."""

import pytest

from kit.consumer.consumer_script import A, B, Script
from penstock.consumer.core import inputs
from penstock.consumer.core.batch_results import is_telling
from penstock.consumer.core.effects import CarryBatch
from penstock.consumer.core.pace import CapacityEstimate, Pace, PaceLimits
from penstock.consumer.core.ranges import Waiting
from penstock.consumer.core.state import RunningBatch
from penstock.consumer.core.topic_capacity import TopicCapacities
from penstock.errors import UnreachableError
from penstock.messages import ConsumerReport, TopicCapacity
from penstock.model import TopicPartition

LIMITS = PaceLimits(batch_bytes=1_000_000, batch_time_s=2.0, backlog_batch_time_s=4.0)
BEHIND = Pace(LIMITS, budget_bytes=100_000.0, full_in_a_row=1, is_warm=True)
PLAIN, OTHER = TopicPartition("plain", 0), TopicPartition("plain", 1)
SLOW = TopicPartition("slow", 0)
MUCH = Waiting(0, 10_000)
LITTLE = Waiting(0, 10)
# Longer than any session needs.
WARM_UP_MS = 100_000
WARM = TopicCapacities(warm=frozenset({"plain", "slow"}))


def measured(topic: str, *batches: tuple[float, float]) -> TopicCapacities:
    found = WARM
    for size, seconds in batches:
        found = found.after({topic: size}, seconds, was_full=True)
    return found


def test_only_a_batch_of_one_warm_topic_shows_its_capacity() -> None:
    """The first batch of a topic is slower, and of two topics nobody knows which took the time."""
    found = TopicCapacities().after({"slow": 1e6}, 100.0, was_full=True)
    assert found.by_topic == {}
    found = found.after({"slow": 5e5, "plain": 5e5}, 1.0, was_full=True)
    assert found.by_topic == {}
    found = found.after({"slow": 1e6}, 2.0, was_full=True).after({"slow": 1e6}, 2.0, was_full=True)
    assert found.by_topic["slow"].log_bytes_per_s == 0.5e6
    assert found.cold(0, 100).after({"slow": 1e6}, 100.0, was_full=True).by_topic == found.by_topic


def test_a_batch_that_is_not_full_shows_a_lower_bound() -> None:
    """Not before there were five; a full one ends the bound, a higher bound ends the others."""
    estimate = CapacityEstimate()
    for _ in range(4):
        estimate = estimate.after(2e6, 1.0, was_full=False)
    assert estimate.at_least_log_bytes_per_s is None
    estimate = estimate.after(2e6, 1.0, was_full=False)
    assert (estimate.log_bytes_per_s, estimate.at_least_log_bytes_per_s) == (None, 2e6)
    slowed = estimate.after(1e6, 1.0, was_full=True).after(1e6, 1.0, was_full=True)
    assert (slowed.log_bytes_per_s, slowed.at_least_log_bytes_per_s) == (1e6, None)
    for _ in range(5):
        slowed = slowed.after(3e6, 1.0, was_full=False)
    assert (slowed.log_bytes_per_s, slowed.at_least_log_bytes_per_s) == (None, 3e6)


def test_while_behind_one_topic_after_the_other_is_measured_alone() -> None:
    """The least backlog first, which ends first; two such batches never follow each other."""
    waiting = {PLAIN: MUCH, OTHER: MUCH, SLOW: MUCH}
    found, chosen = WARM, []
    for number in range(8):
        due = found.to_measure(waiting, BEHIND, number)
        assert due is not None
        chosen.append(due[0])
        found = found.begun(due[0], number)
        assert found.to_measure(waiting, BEHIND, number) is None
        if number > 0:  # the first one was too short to tell
            found = found.after({due[0]: 1e5}, 1.0, was_full=True)
        found = found.begun(None, number)
    assert chosen == ["slow", "slow", "slow", "plain", "plain", "plain", "slow", "plain"]


def test_a_topic_that_shows_nothing_does_not_keep_others_from_being_measured() -> None:
    """After a few batches alone that were too short to tell, the next topic has its turn."""
    waiting = {PLAIN: MUCH, OTHER: MUCH, SLOW: MUCH}
    found, chosen = WARM, []
    for number in range(9):
        due = found.to_measure(waiting, BEHIND, number)
        assert due is not None
        chosen.append(due[0])
        found = found.begun(due[0], number).begun(None, number)
    assert chosen == ["slow"] * 8 + ["plain"]


def test_a_topic_is_measured_a_few_times_and_again_after_a_while() -> None:
    """Others would wait for a batch each time."""
    waiting = {PLAIN: MUCH, SLOW: LITTLE}
    found, times = WARM, 0
    while (due := found.to_measure(waiting, BEHIND, 1_000)) is not None:
        found, times = found.begun(due[0], 1_000).begun(None, 1_000), times + 1
    assert times == 8
    later = found.to_measure(waiting, BEHIND, 301_000)
    assert later is not None
    again = found.begun(later[0], 301_000)
    assert again.alone["plain"] == (1, 301_000)


@pytest.mark.parametrize(
    ("pace", "waiting"),
    [
        (Pace(LIMITS, full_in_a_row=0, is_warm=True), {PLAIN: MUCH, SLOW: MUCH}),
        (Pace(LIMITS, full_in_a_row=1, is_warm=False), {PLAIN: MUCH, SLOW: MUCH}),
        (BEHIND, {PLAIN: MUCH, OTHER: MUCH}),
        (BEHIND, {PLAIN: MUCH, SLOW: Waiting(5, 5)}),
        (BEHIND, {PLAIN: LITTLE, SLOW: LITTLE}),
    ],
)
def test_nothing_is_measured_alone_without_need(
    pace: Pace, waiting: dict[TopicPartition, Waiting]
) -> None:
    """It keeps up, Spark is cold, there is one topic, or none that fills a batch."""
    assert WARM.to_measure(waiting, pace, 0) is None


def test_the_size_of_a_batch_alone_follows_what_the_last_one_showed() -> None:
    """At first its share of an ordinary batch; then as much as takes the same time."""
    waiting = {PLAIN: LITTLE, OTHER: LITTLE, SLOW: Waiting(0, 10**6)}

    def size_after(*batches: tuple[float, float]) -> float:
        due = measured("slow", *batches).to_measure(waiting, BEHIND, 0)
        assert due is not None
        assert due[0] == "slow"
        return due[1]

    assert size_after() == pytest.approx(100_000 / 3)
    assert size_after((100_000, 1.0)) == 400_000
    assert size_after((100_000, 0.1)) == 400_000
    assert size_after((900_000, 0.1)) == 1_000_000
    assert size_after((1_000, 10.0)) == pytest.approx(100_000 / 3)
    slow_by_chance = measured("slow", (100_000, 10.0)).after({"slow": 40_000}, 0.1, was_full=False)
    assert slow_by_chance.to_measure(waiting, BEHIND, 0) == ("slow", 160_000)


C = TopicPartition("payments", 0)


def test_a_consumer_that_is_behind_reports_what_each_topic_costs() -> None:
    """Orders take a second for ten records, payments four."""
    script = Script(batch_bytes=2_000_000, measures_topics=True).owning(A, C).with_spark()
    script.sizes({A: 1_000.0, C: 1_000.0})
    script.now_ms += WARM_UP_MS
    alone: list[str] = []
    for _ in range(14):
        script.ends({A: 100_000_000, C: 100_000_000})
        (batch,) = script.did(CarryBatch)
        topics = {one.range.partition.topic for one in batch.ranges}
        sizes = {one.range.partition.topic: len(one.range) for one in batch.ranges}
        alone += topics if len(topics) == 1 else []
        script.now_ms += sizes.get("orders", 0) + 4 * sizes.get("payments", 0)
        script.batch_ends({one.range.partition: one.range.end for one in batch.ranges})
    assert alone[:4] == ["orders", "orders", "payments", "payments"]
    reports = [m for m in script.wait(2_000) if isinstance(m, ConsumerReport)]
    shown = {one.topic: one.capacity_log_bytes_per_s for one in reports[0].topic_capacities}
    assert shown == {"orders": pytest.approx(1e6), "payments": pytest.approx(0.25e6)}


def test_a_figure_for_all_topics_waits_until_one_is_known_alone() -> None:
    """What waits is another mixture than what is written. Beside rows of topics it is not used."""
    script = Script(batch_bytes=1_000_000_000, measures_topics=True).owning(A, C).with_spark()
    script.sizes({A: 1_000.0, C: 1_000.0})
    script.now_ms += WARM_UP_MS
    of_all = []
    for number in range(12):
        script.ends({A: 100_000_000, C: 100_000_000})
        (batch,) = script.did(CarryBatch)
        is_too_short = len(batch.ranges) == 1 and number < 8
        script.now_ms += 1_000 if is_too_short else 5_000
        script.batch_ends({one.range.partition: one.range.end for one in batch.ranges})
        figure, rows = told(script)
        of_all.append((figure is not None, bool(rows)))
    assert of_all[:8] == [(False, False)] * 8
    assert of_all[-1] == (False, True), "the other topic is being measured"


def test_nothing_is_measured_alone_before_spark_has_warmed_up() -> None:
    """Nor is a figure for all topics told; one for a single topic, or where all are known, is."""
    waiting = {PLAIN: MUCH, SLOW: MUCH}
    cold = measured("plain", (1e5, 1.0), (1e5, 1.0)).cold(1_000, 4_000)
    assert cold.cold(1_000, 600_000).warm_from_ms == 41_000, "however long batches may be"
    assert cold.to_measure(waiting, BEHIND, 32_999) is None
    assert cold.to_measure(waiting, BEHIND, 33_000) is not None
    assert cold.is_measuring(["plain", "slow"], 32_999)
    assert cold.is_measuring(["plain", "slow"], 33_000), "the first one is about to be measured"
    assert not cold.is_measuring(["plain", "slow"], 65_000), "there was too little to measure one"
    assert not cold.begun("plain", 33_000).is_measuring(["plain", "slow"], 33_001)
    assert cold.begun("slow", 33_000).is_measuring(["plain", "slow"], 33_001)
    assert cold.begun("slow", 500).is_measuring(["plain", "slow"], 33_001), "before this session"
    assert not cold.is_measuring(["slow"], 32_999)
    assert not cold.is_measuring(["plain"], 32_999)
    both = cold.cold(0, 0)
    for _ in range(3):
        both = both.after({"slow": 1e5}, 1.0, was_full=True)
    assert not both.cold(1_000, 4_000).is_measuring(["plain", "slow"], 32_999)


def test_a_topic_that_was_not_tried_alone_lately_is_not_being_measured() -> None:
    """Nor one that is known, or that showed nothing in all its batches."""
    found = WARM.begun("plain", 1_000)
    assert found.is_measuring(["plain", "slow"], 60_999)
    assert not found.is_measuring(["plain", "slow"], 61_000)
    assert not found.is_measuring(["slow"], 1_000)
    known = measured("plain", (1e5, 1.0), (1e5, 1.0)).begun("plain", 1_000)
    assert not known.is_measuring(["plain"], 1_000)
    for _ in range(7):
        found = found.begun("plain", 1_000)
    assert not found.is_measuring(["plain"], 1_000)


def test_no_topic_is_measured_alone_where_the_capacity_is_set() -> None:
    """Others would wait for nothing."""
    script = Script(batch_bytes=2_000_000, measures_topics=False).owning(A, C).with_spark()
    script.sizes({A: 1_000.0, C: 1_000.0})
    for _ in range(8):
        script.ends({A: 100_000_000, C: 100_000_000})
        (batch,) = script.did(CarryBatch)
        assert {one.range.partition for one in batch.ranges} == {A, C}
        script.now_ms += 1_000
        script.batch_ends({one.range.partition: one.range.end for one in batch.ranges})


@pytest.mark.parametrize(
    ("seconds", "size_bytes", "fixed_s", "shows"),
    [
        (2.0, 10_000, 0.5, True),
        (1.9, 10_000, 0.5, False),
        (1.9, 500_000, 0.5, True),
        (2.0, 10_000, 1.1, False),
    ],
    ids=["long", "short", "as large as may be", "mostly fixed cost"],
)
def test_a_short_batch_of_one_topic_shows_only_its_fixed_cost(
    seconds: float, size_bytes: float, fixed_s: float, *, shows: bool
) -> None:
    """Its speed would be taken for a capacity far below the real one."""
    pace = Pace(LIMITS, fixed_s=fixed_s)
    alone = RunningBatch((), size_bytes, True, True, 0, 0, is_alone=True)
    ordinary = RunningBatch((), size_bytes, True, True, 0, 0)
    assert is_telling(alone, pace, round(seconds * 1_000)) is shows
    assert is_telling(ordinary, pace, round(seconds * 1_000))


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_batch_that_is_not_weighed_shows_nothing(is_refused: bool) -> None:
    """Decoded bytes are not those of the log; where Kafka tells no sizes, there is nothing else."""
    script = Script(batch_bytes=10_000).owning(A).with_spark()
    if is_refused:
        script.take(inputs.LogSizesNotRead(script.now_ms, UnreachableError("refused")))
    for _ in range(3):
        script.ends({A: 100_000})
        _, end = script.carried(A)
        script.now_ms += 1_000
        script.batch_ends({A: end})
    assert bool(script.state.batches.capacity.full) == is_refused


def test_much_smaller_batches_are_forgotten() -> None:
    """Most of their time is the fixed cost of a batch."""
    estimate = CapacityEstimate().after(1e6, 1.0, was_full=True).after(3e6, 1.0, was_full=True)
    assert estimate.full == ((3e6, 1.0),)
    assert estimate.after(2e6, 1.0, was_full=True).log_bytes_per_s == 2.5e6


def test_what_was_shown_of_other_topics_is_not_told_of_new_ones() -> None:
    """A consumer that got another topic has shown nothing of what it has now."""
    script = Script(batch_bytes=10_000).owning(A).with_spark()
    script.sizes({A: 1_000.0})
    for _ in range(3):
        script.ends({A: 100_000})
        _, end = script.carried(A)
        script.now_ms += 1_000
        script.batch_ends({A: end})
    assert told(script)[0] is not None
    script.start((C, "1.2"))
    script.ledger(C, "1.2", 10)
    script.stop((A, "1.1"))
    assert told(script) == (None, ())
    script.sizes({C: 1_000.0})
    for _ in range(2):
        script.ends({C: 100_000})
        _, end = script.carried(C)
        script.now_ms += 1_000
        script.batch_ends({C: end})
    assert len(script.state.batches.capacity.full) == 1, "the first one was cold"
    assert told(script) == (None, ())


def test_a_limited_consumer_carries_no_more_than_its_limit() -> None:
    """Its batches are quick, and yet the settings let it read a kilobyte a second."""
    script = Script(capacity_bytes_per_s=1_000.0).owning(A).with_spark()
    script.sizes({A: 100.0})
    for end in range(12, 26, 2):
        script.now_ms += 5_000
        script.ends({A: end})
        script.now_ms += 10
        script.batch_ends({A: end})
    (report,) = [m for m in script.wait(2_000) if isinstance(m, ConsumerReport)]
    assert report.at_least_log_bytes_per_s == 1_000.0
    (row,) = report.topic_capacities
    assert row == TopicCapacity(topic="orders", at_least_log_bytes_per_s=1_000.0)


def told(script: Script) -> tuple[float | None, tuple[TopicCapacity, ...]]:
    """What the next report says of the capacity."""
    (report,) = [m for m in script.wait(2_000) if isinstance(m, ConsumerReport)]
    return report.capacity_log_bytes_per_s, report.topic_capacities


def test_a_new_spark_session_is_cold_again() -> None:
    """The first batch after it shows nothing."""
    script = Script().owning(A, B).with_spark()
    script.ends({A: 12, B: 12})
    script.now_ms += 1_000
    script.batch_ends({A: 12, B: 12})
    assert (is_warm(script), script.state.batches.topic_capacities.warm) == (
        True,
        frozenset({"orders"}),
    )
    script.spark()
    assert (is_warm(script), script.state.batches.topic_capacities.warm) == (False, frozenset())


def is_warm(script: Script) -> bool:
    return script.state.batches.pace.is_warm
