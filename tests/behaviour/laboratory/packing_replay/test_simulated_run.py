"""A simulated run as the page keeps it: figures, moves and reasons of every measurement."""

import json
import re
from dataclasses import replace
from itertools import repeat
from math import fsum
from pathlib import Path
from typing import Any

import pytest

from penstock.controller.core.settings import controller_settings
from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.laboratory.packing_replay.replay import (
    OnEveryMeasurement,
    ReplayStep,
    ThroughTrigger,
    replay,
)
from penstock.laboratory.packing_replay.simulated_run import BEGIN_UNIX_MS, SimulatedRun
from penstock.laboratory.packing_replay.stream import Stream
from penstock.model import TopicPartition
from penstock.packing import DEFAULT
from penstock.settings import Settings

INTERVAL_S = 60.0
POLICY = replace(
    controller_settings(Settings()).policy, capacity_bytes_per_s=100, over_capacity_ms=0
)
ONE = tuple(TopicPartition("orders", number) for number in range(3))
# The second measurement is too much for one consumer.
RISING = Stream(ONE, ((30, 30, 20), (60, 50, 20), (60, 50, 20)))


def ran(
    stream: Stream, mode: OnEveryMeasurement | ThroughTrigger
) -> tuple[SimulatedRun, list[ReplayStep]]:
    run, steps = SimulatedRun("CHAIN", stream, mode, INTERVAL_S), []
    for step in replay(DEFAULT, stream, mode, repeat(0.0).__next__):
        run.add(step)
        steps.append(step)
    return run, steps


def status_of(frame: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = frame["answers"]["/v1/status"]["status"]
    return found


def test_every_frame_has_the_figures_of_its_measurement() -> None:
    """Speeds, consumers and who has which partition, against the replay's own steps."""
    stream = generate(Recipe(Kind.WALK, 20, 10, 12, 3), 100)
    run, steps = ran(stream, OnEveryMeasurement(100))
    assert len(run.frames.kept) == len(steps) == 12
    for frame, step in zip(run.frames.kept, steps, strict=True):
        speeds = stream.speeds(step.measurement)
        status, consumers = status_of(frame), frame["answers"]["/v1/consumers?with=partitions"]
        assert frame["at_unix_ms"] == BEGIN_UNIX_MS + step.measurement * 60_000
        assert status["speed"]["written_bytes_per_s"] == fsum(speeds.values())
        assert status["consumers"]["running"] == step.consumers
        assert status["consumers"]["fewest_possible"] <= status["consumers"]["needed"]
        held = {
            TopicPartition(one["topic"], one["partition"]): row["consumer"]
            for row in consumers["consumers"]
            for one in row["segments"]
        }
        assert held == {p: int(c) for p, c in step.assignment.owners.items()}


def test_what_a_simulation_does_not_know_is_unknown() -> None:
    """Backlog and what is carried are null, never 0."""
    run, _ = ran(RISING, OnEveryMeasurement(100))
    status = status_of(run.frames.kept[-1])
    assert status["speed"]["carried_bytes_per_s"] is None
    assert status["backlog"]["records"] is None
    assert status["backlog"]["longest"] is None
    assert status["freshness_s"] is None


def test_a_plan_is_told_with_its_reason_and_its_cost() -> None:
    """In the words of the trigger, at the moment of the move; then nothing needs to change."""
    run, steps = ran(RISING, ThroughTrigger(POLICY, INTERVAL_S))
    assert [step.moved_partitions for step in steps] == [0, 1, 0]
    first, second, third = (status_of(one)["now"] for one in run.frames.kept)
    assert (first["code"], second["code"]) == ("unread_partition", "over_capacity")
    assert "consumer 1 is over" in second["why"]
    assert (third["sentence"], third["why"]) == ("Nothing needs to change.", None)
    told = list(run.watch.decisions)
    assert [one.code for one in told] == [
        "unread_partition", "plan_made", "consumer_created",
        "over_capacity", "plan_made", "consumer_created",
    ]  # fmt: skip
    plan = told[4]
    assert plan.sentence == "plan 2: 1 move, 1 consumer to create"
    assert (plan.moves, plan.moved_bytes_per_s) == (1, steps[1].moved_score * 100)


def test_who_packs_on_every_measurement_says_so() -> None:
    """There is no trigger, so there is no other reason; a consumer that ends is told."""
    falling = Stream(ONE, ((60, 50, 20), (10, 10, 10)))
    run, _ = ran(falling, OnEveryMeasurement(100))
    assert status_of(run.frames.kept[0])["now"]["why"] == "every measurement is packed"
    assert [one.sentence for one in run.watch.decisions][-1].endswith("ended")


def test_consumers_over_their_capacity_are_a_condition() -> None:
    """As are partitions that are faster than a whole consumer."""
    run, _ = ran(RISING, ThroughTrigger(replace(POLICY, consumers_max=1), INTERVAL_S))
    assert status_of(run.frames.kept[0])["conditions"] == []
    assert status_of(run.frames.kept[2])["conditions"] == [
        {"condition": "over capacity", "reason": "consumer 1 is over 100 B/s"}
    ]
    oversize = Stream(ONE, ((130, 10, 10),))
    run, _ = ran(oversize, OnEveryMeasurement(100))
    (condition,) = status_of(run.frames.kept[0])["conditions"]
    assert condition["condition"] == "oversize"


@pytest.mark.parametrize("measurements", [2, 40])
def test_the_time_line_has_no_gaps(measurements: int, tmp_path: Path) -> None:
    """Whatever the time between two measurements is, each point of the line has one."""
    stream = Stream(ONE, ((10.0, 10.0, 10.0),) * measurements)
    run, _ = ran(stream, OnEveryMeasurement(100))
    file = tmp_path / "run.html"
    run.write(file, {"moves": "0"})
    found = re.search(r'id="penstock-run">(.*?)</script>', file.read_text(encoding="utf-8"))
    assert found is not None
    whole = json.loads(found[1])
    assert (whole["is_simulated"], whole["results"]) == (True, {"moves": "0"})
    line = whole["answers"]["/v1/timeline"]["timeline"]
    assert line["written_bytes_per_s"] == [30.0] * measurements
