"""`penstock up --recommend` decides as the controller would, with the same settings."""

from dataclasses import dataclass, field

from penstock.cli.recommend import ImaginaryGroup, _kept_besides
from penstock.controller.core.settings import controller_settings
from penstock.model import TopicPartition
from penstock.packing import DEFAULT, Packing, PackingProblem, algorithm_named
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


def test_it_says_what_would_change_and_why() -> None:
    """A first assignment, then calm, then an overload with its figures."""
    chosen = controller_settings(SETTINGS)
    group = ImaginaryGroup(chosen.policy, algorithm_named(chosen.algorithm))
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
    policy = controller_settings(changed_settings(SETTINGS, {"controller.consumers_max": 1})).policy
    group = ImaginaryGroup(policy, DEFAULT)
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
        group = ImaginaryGroup(controller_settings(changed).policy, packer)
        group.measured(speeds(40, 40), 0)
        group.measured(speeds(80, 40), 10_000)
        rising = packer.asked[-1].forecast_bytes_per_s
        assert bool(rising) == expected
        assert not expected or rising[TopicPartition("t", 0)] > 80_000


def test_it_names_the_consumers_that_read_nothing() -> None:
    """Spares and the minimum are kept beside what the packing needs."""
    changed = {"controller.spare_consumers": 2, "controller.consumers_min": 3}
    text = _kept_besides(controller_settings(changed_settings(SETTINGS, changed)))
    assert "keeps 2 spares (controller.spare_consumers)" in text
    assert "at least 3 consumers in all (controller.consumers_min)" in text
