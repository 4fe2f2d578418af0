"""When a simulated group has too few consumers for its load."""

from dataclasses import replace

import pytest

from penstock.laboratory.protocol_simulation import size_checks
from penstock.laboratory.protocol_simulation.scenario import scenario
from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup


def is_too_small(
    working: int, load: float, patch: pytest.MonkeyPatch, *, carried_by_all: float
) -> bool:
    """Whether so many consumers are too few for so many capacities of one of them."""
    group = SimulatedGroup(
        replace(scenario(318), carried_by_one=1.0, carried_by_all=carried_by_all)
    )
    speed = load * group.capacity_bytes_per_s / len(group.logs)
    for log in group.logs.values():
        log.set_speed(0, speed)
    patch.setattr(size_checks, "_working", lambda _: working)
    return size_checks.too_small(group) is not None


def test_fewer_than_carry_the_load_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each filled to the brim; and no more are asked for than there may be."""
    assert is_too_small(2, 2.9, monkeypatch, carried_by_all=0.0)
    assert not is_too_small(3, 2.9, monkeypatch, carried_by_all=0.0)
    assert not is_too_small(5, 90.0, monkeypatch, carried_by_all=0.0)


def test_a_shared_limit_that_is_passed_asks_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers that slow each other down are no need."""
    assert not is_too_small(1, 2.9, monkeypatch, carried_by_all=2.0)
    assert is_too_small(1, 2.9, monkeypatch, carried_by_all=4.0)
