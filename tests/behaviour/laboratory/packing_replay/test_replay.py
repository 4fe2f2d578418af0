"""Replays: on every measurement, and through the trigger."""

from dataclasses import replace
from itertools import count

import pytest

from penstock.controller.core.settings import controller_settings
from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.laboratory.packing_replay.replay import (
    OnEveryMeasurement,
    ReplayStep,
    ThroughTrigger,
    lower_bounds,
    replay,
)
from penstock.laboratory.packing_replay.stream import Stream
from penstock.laboratory.packing_replay.summary import summarise, table
from penstock.model import TopicPartition
from penstock.packing import DEFAULT, algorithm_named
from penstock.packing.trigger import Reason
from penstock.settings import Settings


def clock() -> float:
    """Each call returns a time one second later."""
    return float(next(_ticks))


_ticks = count()
POLICY = replace(
    controller_settings(Settings()).policy,
    capacity_bytes_per_s=100,
    look_ahead_ms=0,
    over_capacity_ms=0,
)
CALM = Stream((TopicPartition("a", 0), TopicPartition("a", 1)), ((60, 30),) * 5)
RISING = Stream(CALM.partitions, ((60, 30), (60, 30), (80, 30), (80, 30)))


def through_trigger(stream: Stream, **policy: float) -> list[ReplayStep]:
    way = ThroughTrigger(replace(POLICY, **policy), interval_s=10)  # type: ignore[arg-type]  # numbers of either kind
    return list(replay(DEFAULT, stream, way, clock))


def test_on_every_measurement_the_packer_runs() -> None:
    """Five measurements give five timed runs, and the first assignment counts as no move."""
    steps = list(replay(DEFAULT, CALM, OnEveryMeasurement(100), clock))
    assert [step.took_s for step in steps] == [1, 1, 1, 1, 1]
    assert [step.consumers for step in steps] == [1] * 5
    assert sum(step.moved_partitions for step in steps) == 0


def test_bounds_are_passed_on() -> None:
    """The maxima of partitions per consumer and of consumers reach the packer."""
    mode = OnEveryMeasurement(100, partitions_per_consumer_max=1)
    assert next(replay(DEFAULT, CALM, mode, clock)).consumers == 2
    step = next(replay(DEFAULT, CALM, OnEveryMeasurement(50, consumers_max=1), clock))
    assert (step.consumers, step.over_capacity, step.oversize) == (1, 1, 1)


def test_through_the_trigger_it_runs_when_it_must() -> None:
    """At the start, and when the consumer is over; the moved load is counted then."""
    steps = through_trigger(RISING, target_utilisation=1)
    assert [step.reason for step in steps] == [
        Reason.UNREAD_PARTITION,
        Reason.CALM,
        Reason.OVER_CAPACITY,
        Reason.CALM,
    ]
    assert [step.moved_score for step in steps] == [0, 0, pytest.approx(0.3), 0]
    assert [step.took_s is not None for step in steps] == [True, False, True, False]


def test_the_trigger_scales_down_on_its_timer() -> None:
    """After the load has fallen, a consumer is removed when the period is over."""
    falling = Stream(CALM.partitions, ((80, 30), *(((20, 30),) * 4)))
    steps = through_trigger(falling, target_utilisation=1, scale_down_period_ms=30_000)
    assert [step.consumers for step in steps] == [2, 2, 2, 1, 1]


def test_the_trigger_may_be_asked_less_often() -> None:
    """Asked every 30 s, the overload of the third measurement is seen at the fourth."""
    way = ThroughTrigger(replace(POLICY, target_utilisation=1), interval_s=10, period_s=30)
    steps = list(replay(DEFAULT, RISING, way, clock))
    assert [step.over_capacity for step in steps] == [0, 0, 1, 0]


def test_look_ahead_feeds_the_trend_to_the_packer() -> None:
    """On a wave the forecast changes the assignment, and every partition is still assigned."""
    stream = generate(Recipe(Kind.WAVE, 40, 2, 60, 5))
    looking = replace(POLICY, look_ahead_ms=60_000)
    plain = list(replay(DEFAULT, stream, ThroughTrigger(POLICY, 10), clock))
    ahead = list(replay(DEFAULT, stream, ThroughTrigger(looking, 10), clock))
    assert [s.assignment for s in plain] != [s.assignment for s in ahead]
    assert all(len(step.assignment.owners) == 40 for step in ahead)
    assert all(step.over_capacity == 0 for step in ahead)


def test_the_table_has_all_that_was_asked_for() -> None:
    """The table has consumers, CBS, R, moves, time per run and the lower bound."""
    ways = {
        name: replay(algorithm_named(name), RISING, OnEveryMeasurement(100), clock)
        for name in ("CHAIN", "NF")
    }
    summaries = [summarise(name, steps) for name, steps in ways.items()]
    rows = table(summaries, lower_bounds(RISING, 100), interval_s=5)
    assert [row["algorithm"] for row in rows] == ["CHAIN", "NF"]
    chain = rows[0]
    assert (chain["consumers_mean"], chain["consumers_max"], chain["moves"]) == (1.5, 2, 1)
    assert (chain["cbs"], chain["r"], chain["time_per_run_ms"]) == (0, 0.1, 1000)
    assert chain["lower_bound_mean"] == 1.5
