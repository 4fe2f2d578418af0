"""What the checks of consumers of two strengths find."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.laboratory.protocol_simulation import strength_checks
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.laboratory.protocol_simulation.scenario import scenario, with_unequal_consumers
from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup
from penstock.laboratory.protocol_simulation.size_checks import too_large, too_small
from penstock.laboratory.protocol_simulation.strength_checks import (
    OVERFILLED_MS_MAX,
    Overfilled,
    needed_of_these,
    overfilled,
    strong_have_less,
)
from penstock.model import ConsumerId

# A strong consumer carries 1.1 kB/s, one of half its strength 731 B/s.
STRENGTHS = (1.0, 0.5)


def group_with(patch: pytest.MonkeyPatch, *speeds: tuple[float, ...]) -> SimulatedGroup:
    """Consumers 1, 2, ... have partitions of these speeds; those with odd numbers are weak."""
    alike = replace(
        with_unequal_consumers(scenario(1)),
        topics=(sum(map(len, speeds)),),
        strengths=STRENGTHS,
        strength_is_of_the_start=False,
    )
    group = SimulatedGroup(alike)
    partitions = iter(sorted(group.logs))
    processes = []
    for number, held in enumerate(speeds, start=1):
        owned = {next(partitions): speed for speed in held}
        for partition, speed in owned.items():
            group.logs[partition].set_speed(0, speed)
        ownership = SimpleNamespace(owned=owned, incarnation=1)
        process: Any = SimpleNamespace(consumer=ConsumerId(number), ownership=ownership)
        processes.append(process)
    patch.setattr(strength_checks, "at_work", lambda _: processes)
    patch.setattr(
        "penstock.laboratory.protocol_simulation.size_checks.at_work", lambda _: processes
    )
    patch.setattr(
        "penstock.laboratory.protocol_simulation.size_checks._working", lambda _: len(processes)
    )
    return group


def test_who_has_more_than_it_carries_has_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own strength; and one partition that is too fast is nobody's fault."""
    group = group_with(monkeypatch, (450, 450), (450, 450), (900,))
    assert overfilled(group).keys() == {ConsumerId(1)}


def test_too_much_for_long_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a while, in which its weakness shows."""
    group = group_with(monkeypatch, (450, 450), (450, 450))
    watched = Overfilled(group)
    watched.check()
    group.clock.now_ms += OVERFILLED_MS_MAX
    watched.check()
    group.clock.now_ms += 1
    with pytest.raises(ViolationError, match="consumer 1 has had too much"):
        watched.check()


def test_the_size_is_judged_by_these_consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strongest first; a partition that is faster than any of them takes one for itself."""
    two = group_with(monkeypatch, (400, 200), (600, 300))
    assert needed_of_these(two) == 2
    assert too_small(two) is None
    hot = group_with(monkeypatch, (400, 100), (300, 100), (5_000,))
    assert needed_of_these(hot) == 2
    few = group_with(monkeypatch, (400, 400), (600, 600))
    assert too_small(few) is not None
    many = group_with(monkeypatch, *(((20.0, 20.0),) * 6))
    assert needed_of_these(many) == 1
    assert too_large(many) is not None


def test_the_strong_must_have_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are both."""
    assert strong_have_less(group_with(monkeypatch, (500, 100), (400, 100))) is not None
    assert strong_have_less(group_with(monkeypatch, (300, 100), (400, 100))) is None
    assert strong_have_less(group_with(monkeypatch, (300, 100))) is None
