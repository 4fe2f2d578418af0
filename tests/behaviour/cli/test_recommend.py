"""`penstock recommend` decides as the controller would, and ends with a recommendation."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kit.program import invoked
from penstock.cli.catch_up import catch_up
from penstock.cli.imaginary_group import ImaginaryGroup, take
from penstock.cli.known_capacities import known_capacities
from penstock.cli.plan import new_group
from penstock.cli.recommendation import Recommendation, kept_besides
from penstock.cli.recommendation import recommendation as recommended
from penstock.cli.recorded_speeds import Record
from penstock.cli.watched import Watched
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.errors import PenstockError, UsageError
from penstock.laboratory.packing_replay.stream import read_stream
from penstock.model import TopicPartition
from penstock.packing import DEFAULT, Packing, PackingAlgorithm, PackingProblem
from penstock.settings import Settings, changed_settings

SETTINGS = changed_settings(
    Settings(), {"packing.capacity": "100kB/s", "packing.over_capacity_for": "0s"}
)


@dataclass(slots=True)
class Recording:
    """CHAIN, with the questions it was asked."""

    name: str = "recording"
    sentence: str = ""
    asked: list[PackingProblem] = field(default_factory=list)

    def pack(self, problem: PackingProblem) -> Packing:
        self.asked.append(problem)
        return DEFAULT.pack(problem)


def speeds(*kilobytes_per_s: float) -> dict[TopicPartition, float]:
    return {TopicPartition("t", n): 1_000 * speed for n, speed in enumerate(kilobytes_per_s)}


def imaginary(chosen: ControllerSettings, packer: PackingAlgorithm = DEFAULT) -> ImaginaryGroup:
    return ImaginaryGroup(chosen.policy, packer, known_capacities(chosen))


def test_it_says_what_would_change_and_why() -> None:
    """A first assignment, then calm, then an overload with its figures."""
    group = imaginary(controller_settings(SETTINGS))
    text, is_change = group.measured(speeds(40, 40), 0)
    assert is_change
    assert text == (
        "No consumer reads t-0, t-1. Would use 1 consumer (at least 1 needed), "
        "moving 0 partitions (0 B/s)."
    )
    text, is_change = group.measured(speeds(40, 40), 5_000)
    assert not is_change
    assert text == "80 kB/s in 2 partitions on 1 consumer; no consumer is over capacity."
    text, is_change = group.measured(speeds(80, 40), 10_000)
    assert is_change
    assert text.startswith("Consumer 1 is over capacity: 120 of 100 kB/s. Would use 2 consumers")
    assert len(group.assignment) == 2


def test_a_partition_faster_than_a_consumer_is_named() -> None:
    """It gets a consumer alone; an overload that no packing can relieve changes nothing."""
    group = imaginary(
        controller_settings(changed_settings(SETTINGS, {"controller.consumers_max": 1}))
    )
    text, _ = group.measured(speeds(120, 10), 0)
    assert "t-0 alone is more than one consumer carries." in text
    text, is_change = group.measured(speeds(120, 10), 5_000)
    assert not is_change
    assert text.endswith("130 of 100 kB/s; no better assignment was found.")


def test_it_looks_ahead_as_the_controller_does() -> None:
    """The packer is told where the speeds are heading, unless the settings say 0s."""
    for look_ahead, expected in (("60s", True), ("0s", False)):
        changed = changed_settings(SETTINGS, {"packing.look_ahead": look_ahead})
        packer = Recording()
        group = imaginary(controller_settings(changed), packer)
        group.measured(speeds(40, 40), 0)
        group.measured(speeds(80, 40), 10_000)
        rising = packer.asked[-1].forecast_bytes_per_s
        assert bool(rising) == expected
        assert not expected or rising[TopicPartition("t", 0)] > 80_000


def test_it_names_the_consumers_that_read_nothing() -> None:
    """Spares and the minimum are kept beside what the packing needs."""
    changed = {"controller.spare_consumers": 2, "controller.consumers_min": 3}
    text = kept_besides(controller_settings(changed_settings(SETTINGS, changed)))
    assert "keeps 2 spares (controller.spare_consumers)" in text
    assert "at least 3 consumers in all (controller.consumers_min)" in text


# As with `packing.capacity: auto`, if that assumed 100 kB/s.
OPEN = replace(controller_settings(SETTINGS), capacity_is_measured=True)


FEW_SET = ("packing.capacity", "controller.consumers_max")


def recommendation(seen: Watched, chosen: ControllerSettings) -> Recommendation:
    """Of a lake that has nothing yet."""
    return recommended(seen, chosen, ledger={})


def watched(*samples: dict[TopicPartition, float], **changes: object) -> Watched:
    """What a watch remembers of these measurements, one second apart."""
    group = imaginary(controller_settings(changed_settings(SETTINGS, changes)))
    seen = Watched()
    for second, sample in enumerate(samples):
        take(seen, group, sample, 1_000 * second)
        seen.seconds = second + 1.0
    return seen


def test_a_watch_ends_with_a_recommendation() -> None:
    """A load that doubles: what is needed now, on average, at most; and what to start with."""
    seen = watched(speeds(40, 40), speeds(40, 40), speeds(80, 80), speeds(80, 80))
    found = recommendation(seen, controller_settings(SETTINGS))
    assert (found.measurements, found.partitions) == (4, 2)
    assert (found.written_mean_bytes_per_s, found.written_highest_bytes_per_s) == (120e3, 160e3)
    assert (found.consumers_at_the_end, found.consumers_highest) == (2, 2)
    assert found.consumers_at_least == 2
    assert found.consumers_mean == pytest.approx(sum(found.consumers_over_time) / 4)
    assert (found.changes, found.moves) == (1, 1)
    assert found.hot_partitions == ()
    assert found.settings == {"packing.capacity": "100kB/s"}
    assert found.consumers_max_enough == 4
    text = found.text(controller_settings(SETTINGS))
    assert "120 kB/s written on average, 160 kB/s at most" in text
    assert "One consumer carries 100 kB/s (packing.capacity, as set)." in text
    assert "A group of fixed size would need 2 all the time." in text
    assert text.endswith("To start with: penstock up --set packing.capacity=100kB/s")
    few = controller_settings(changed_settings(SETTINGS, {"controller.consumers_max": 3}))
    start = "penstock up --set packing.capacity=100kB/s --set controller.consumers_max=4"
    found = recommendation(seen, few)
    assert found.settings == {"packing.capacity": "100kB/s", "controller.consumers_max": 4}
    assert found.text(few).endswith(start)


def test_a_hot_partition_and_an_assumption_are_named() -> None:
    """With what helps; while the capacity is assumed, it is only perhaps hot."""
    chosen = controller_settings(SETTINGS)
    found = recommendation(watched(speeds(120, 10)), chosen)
    assert [one.partition for one in found.hot_partitions] == ["t-0"]
    known = "Hot: t-0 alone is written at 120 kB/s, more than one consumer carries (100 kB/s)."
    assert known in found.text(chosen)
    found = recommendation(watched(speeds(120, 10)), OPEN)
    assert [one.partition for one in found.hot_partitions] == ["t-0"]
    text = found.text(OPEN)
    assert known not in text
    assert (
        "Hot: t-0 alone is written at 120 kB/s. That may be more than one consumer carries, if one "
        "carries 100 kB/s (assumed)."
    ) in text
    assert "What is assumed decides all these figures" in text
    assert "(packing.capacity, assumed, until a group measures it)" in text


def test_every_setting_has_its_value_and_its_reason() -> None:
    """A newcomer read figures and did not know what to set, in which unit, and why."""
    chosen = OPEN
    seen = watched(speeds(40, 40), speeds(40, 40), speeds(80, 80), speeds(80, 80))
    found = recommendation(seen, chosen)
    lines = found.text(chosen).splitlines()
    assert lines[0].endswith("counted in bytes of the broker's log (after compression).")
    assert not any(line.startswith("Set packing.capacity") for line in lines)
    (capacity,) = [line for line in lines if line.startswith("Leave packing.capacity at auto: ")]
    assert "so it may need fewer consumers or more." in capacity
    assert (found.settings, found.consumers_max_enough) == ({}, None)
    assert (
        f"controller.consumers_max is {chosen.consumers_max} now. How many are enough is not known "
        "while the capacity is assumed, so no other number is recommended."
    ) in lines
    assert lines[-1] == "To start with: penstock up"
    fixed = controller_settings(SETTINGS)
    lines = recommendation(seen, fixed).text(fixed).splitlines()
    enough = f"controller.consumers_max is {fixed.consumers_max} now, which is enough"
    reason = (
        "the most consumers at a time: 2 that were needed at most, 1 for a load that is 50% "
        "higher, and 1 for spares."
    )
    assert f"{enough}; 4 would limit what the group may cost: {reason}" in lines
    few = controller_settings(changed_settings(SETTINGS, {"controller.consumers_max": 1}))
    found = recommendation(seen, few)
    assert f"Set controller.consumers_max to 4: {reason}" in found.text(few).splitlines()
    assert found.settings.keys() == found.reasons.keys() == {*FEW_SET}
    assert any("raise packing.knob (0 is fewest consumers" in line for line in lines)
    assert "short look" in found.text(chosen)
    seen.seconds = 3_600
    long = recommendation(seen, fixed).text(fixed)
    assert "for 1 h:" in long
    assert "short look" not in long
    assert "as you have set it" in long


def test_what_waits_is_said_with_the_time_it_takes() -> None:
    """200,000 records wait in logs that a lake has a part of; 100 kB/s, of which 80 are written."""
    seen = watched(speeds(40, 40))
    seen.rows = [row(0, speed=40_000, end=150_000), row(1, speed=40_000, start=20_000, end=80_000)]
    chosen = controller_settings(SETTINGS)
    ledger = {TopicPartition("t", 0): 10_000}
    found = recommended(seen, chosen, ledger=ledger)
    assert (found.waiting.records, found.waiting.log_bytes) == (200_000, 20_000_000)
    assert (
        "Waiting now, not in the lake: 200,000 records. 1 consumer would carry them in about "
        "16 min 40 s, with the 20 kB/s of packing.capacity that the load leaves."
    ) in found.text(chosen).splitlines()


def row(
    partition: int, *, speed: float, end: int, start: int = 0, size: float | None = 100.0
) -> dict[str, Any]:
    return {
        "topic": "t",
        "partition": partition,
        "write_speed_bytes_per_s": speed,
        "mean_log_bytes_per_record": size,
        "start_offset": start,
        "end_offset": end,
    }


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([row(0, speed=9, end=0)], "Nothing waits: every record is in the lake."),
        ([row(0, speed=0, end=7, size=None)], "is not known: nothing is written."),
        ([row(0, speed=200, end=7)], "1 consumer would have nothing to spare for them."),
        (
            [row(0, speed=0, end=7, size=None), row(1, speed=50, end=0)],
            "not in the lake: 7 records. 1 consumer would carry them in about 14 s",
        ),
    ],
)
def test_what_is_unknown_of_what_waits_is_said(rows: list[dict[str, Any]], text: str) -> None:
    """A log that nobody writes to has records of the usual size."""
    found = catch_up(rows, {}, consumers=0, capacity_bytes_per_s=100.0)
    assert text in found.text()


def test_a_group_that_would_not_change_is_not_called_restless() -> None:
    """And it is said whether to follow the bound."""
    chosen = controller_settings(changed_settings(SETTINGS, {"controller.consumers_max": 90}))
    seen = watched(speeds(40, 40))
    text = recommendation(seen, chosen).text(chosen)
    assert "The group would not change in this time.\n" in text
    assert "packing.knob" not in text
    assert "controller.consumers_max is 90 now, which is enough; 3 would limit what" in text
    assert text.splitlines()[-1] == "To start with: penstock up --set packing.capacity=100kB/s"
    few = controller_settings(changed_settings(SETTINGS, {"controller.consumers_max": 1}))
    few_text = recommendation(seen, few).text(few)
    assert "controller.consumers_max is 1 now, which is too few: raise it." in few_text


def record(file: Path, *samples: dict[TopicPartition, float]) -> None:
    recorded = Record(file)
    with recorded:
        for sample in samples:
            recorded.add(sample)
    if recorded.fault is not None:
        raise recorded.fault


def test_simulate_reads_what_was_recorded(tmp_path: Path) -> None:
    """A partition that appeared later has 0 before."""
    file = tmp_path / "speeds.csv"
    record(file, speeds(40), speeds(40, 10))
    stream = read_stream(file)
    assert stream.rows == ((40_000.0, 0.0), (40_000.0, 10_000.0))
    done = invoked("simulate", "--stream", str(file), "--capacity", "100kB/s", "--trigger")
    assert done.exit_code == 0
    assert "CBS: consumers above the fewest" in done.stderr
    assert "R: load that a repack moves" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--for", "soon"], "--for: 'soon' is not a duration"),
        (["--for", "0s"], "longer than 0s"),
        (["--record", "no/such/folder/a.csv"], "there is no directory"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_watched(
    arguments: list[str], reason: str
) -> None:
    """With exit code 2 and the reason."""
    error = invoked("recommend", *arguments).exception
    assert isinstance(error, UsageError)
    assert reason in error.message


def test_a_plan_of_a_new_group_needs_speeds() -> None:
    """It says what to do when none is known; else every partition is to start."""
    policy = controller_settings(SETTINGS).policy
    with pytest.raises(PenstockError, match="No speed is known yet"):
        new_group(policy, {})
    problem = new_group(policy, speeds(60, 60))
    assert len(DEFAULT.pack(problem).assignment) == 2
