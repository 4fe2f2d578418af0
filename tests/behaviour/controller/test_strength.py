"""Consumers that carry more or less than the others: packed, and shown, by their own measure."""

from dataclasses import replace

import pytest

from kit.controller.story import after
from kit.controller.story_state import state_of
from kit.controller.two_topics import TWO_TOPICS
from penstock.controller.core.capacity import (
    Source,
    capacities_of,
    capacity_of_consumer,
    first_capacities,
    source_of,
    strength_of,
)
from penstock.controller.core.state import ConsumerRecord, KnownCapacity, State
from penstock.model import ConsumerId

ONE, TWO = ConsumerId(1), ConsumerId(2)


def known(bytes_per_s: float, source: str = "measured") -> KnownCapacity:
    return KnownCapacity(bytes_per_s, bytes_per_s, bytes_per_s, source)


def measured(**own: float) -> tuple[State, ConsumerRecord]:
    """A group with two measured topics, and what consumer 1 has shown of them."""
    state = state_of(after(*TWO_TOPICS))
    state = replace(state, capacities={"plain": known(100), "slow": known(10)})
    return state, replace(state.consumers[ONE], capacity_by_topic=own)


@pytest.mark.parametrize(
    ("own", "strength"),
    [
        ({"plain": 124.0}, 1),
        ({"plain": 130.0}, 1.3),
        ({"plain": 81.0}, 1),
        ({"plain": 50.0}, 0.5),
        ({"plain": 50.0, "slow": 20.0}, 0.5),
        ({"plain": 200.0, "gone": 1.0}, 2),
        ({"gone": 1.0}, 1),
    ],
)
def test_the_strength(own: dict[str, float], strength: float) -> None:
    """Within a quarter it is like the others; of two topics the lower one counts."""
    state, record = measured(**own)
    assert strength_of(state, record, capacities_of(state)) == pytest.approx(strength)


def test_people_see_the_strength() -> None:
    """Where topics cost differently, and where they cost the same."""
    state, record = measured(plain=200.0)
    state = replace(state, consumers={**state.consumers, ONE: record})
    assert capacity_of_consumer(state, ONE) == pytest.approx(200)
    alike = replace(state, capacities={"plain": known(100), "slow": known(100)})
    assert capacity_of_consumer(alike, ONE) == pytest.approx(200)
    assert capacity_of_consumer(alike, TWO) == pytest.approx(100)


def test_a_calibrated_topic_is_less_certain_than_one_measured_together() -> None:
    """Of several sources the least certain is told."""
    state, _ = measured()
    mixed = {"plain": known(9, "together"), "slow": known(9, "calibrated")}
    assert source_of(replace(state, capacities=mixed)) is Source.CALIBRATED


def test_an_older_calibration_stays_where_there_is_no_new_one() -> None:
    """It is better than nothing."""
    old = {"plain": known(9, "calibrated")}
    assert first_capacities(old, {}) == old
