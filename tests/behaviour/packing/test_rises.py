"""How far loads rise before a plan helps."""

from dataclasses import replace

import pytest

from penstock.model import ConsumerId, TopicPartition
from penstock.packing.rises import Rises, look
from penstock.packing.speed_memory import SpeedMemory, remember

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
HELD = {ConsumerId(1): [P], ConsumerId(2): [Q], ConsumerId(3): []}


def seen(loads: list[float], share: float = 0.99, every_ms: int = 10_000) -> float | None:
    """The rise of a group in which one partition changes, looked at every ten seconds."""
    rises, memory = Rises(), SpeedMemory()
    for number, load in enumerate(loads):
        speeds = {P: load, Q: 10.0}
        now_ms = number * 10_000
        memory = remember(memory, speeds, now_ms, 0, 300_000)
        rises = look(rises, speeds, memory, HELD, 100.0, now_ms, every_ms)
    return rises.not_exceeded(share)


def test_nothing_is_said_before_ten_minutes() -> None:
    """A group that has just begun has seen no peak."""
    assert Rises().not_exceeded(0.99) is None
    assert seen([10.0] * 50) is None
    assert seen([10.0] * 70) == 0.0
    assert Rises(0, 3_600_000).not_exceeded(0.99) is None


def test_a_peak_that_comes_again_is_no_rise() -> None:
    """The group carries it already: only what is above the highest of the window counts."""
    assert seen([10.0, 10.0, 60.0] * 40, share=0.95) == 0.0


def test_a_load_that_climbs_rises() -> None:
    """By 4 % of a consumer at every look; the other consumer is calm half of the time."""
    climbing = [4.0 * number for number in range(100)]
    assert seen(climbing, share=0.99) == 0.04
    assert seen(climbing, share=0.5) == 0.0


def test_an_absurd_rise_is_in_the_last_bin() -> None:
    """And it is forgotten with time: what was an hour ago counts half."""
    assert seen([10.0] * 70 + [1e9], share=0.9999) == 1.0
    assert seen([10.0, 1e9] + [10.0] * 2_000, share=0.9999) == 0.0


def test_it_looks_only_so_often() -> None:
    """Looks within the time that a plan needs say nothing new."""
    rises = look(Rises(), {P: 1.0}, SpeedMemory(), HELD, 100.0, 0, 10_000)
    assert look(rises, {P: 99.0}, SpeedMemory(), HELD, 100.0, 9_999, 10_000) is rises


def test_rises_are_rounded_up_and_halved_in_an_hour() -> None:
    """A partition that is new to its consumer is no rise."""
    one = ConsumerId(1)
    memory = remember(SpeedMemory(), {P: 10.0}, 0, 0, 300_000)
    first = look(Rises(), {P: 10.0}, memory, {one: [P]}, 100.0, 0, 1)
    memory = remember(memory, {P: 13.0}, 1_000, 0, 300_000)
    second = look(first, {P: 13.0, Q: 50.0}, memory, {one: [P, Q]}, 100.0, 1_000, 1)
    assert second.counted[2] == 1  # 3 % are up to 4 %
    later = look(second, {P: 13.0}, memory, {one: [P]}, 100.0, 3_601_000, 1)
    assert later.counted[2] == pytest.approx(0.5)
    assert replace(later, began_ms=0, looked_ms=599_999).not_exceeded(0.9) is None
    assert replace(later, began_ms=0, looked_ms=600_000).not_exceeded(0.5) is not None


def test_a_dear_topic_rises_further() -> None:
    """By what its bytes cost."""
    one = ConsumerId(1)
    memory = remember(SpeedMemory(), {P: 10.0}, 0, 0, 300_000)
    first = look(Rises(), {P: 10.0}, memory, {one: [P]}, 100.0, 0, 1)
    found = look(first, {P: 12.0}, memory, {one: [P]}, 100.0, 1_000, 1, {"t": 5.0})
    assert found.counted[5] == 1  # 2 % times 5


def test_a_rise_is_a_share_of_what_the_consumer_itself_carries() -> None:
    """Ten of a hundred are a tenth for a usual one, and a fifth for one of half its strength."""
    weak, usual = ConsumerId(1), ConsumerId(2)
    held = {weak: [P], usual: [Q]}
    memory = remember(SpeedMemory(), {P: 10.0, Q: 10.0}, 0, 0, 300_000)
    first = look(Rises(), {P: 10.0, Q: 10.0}, memory, held, 100.0, 0, 1)
    risen = {P: 20.0, Q: 20.0}
    found = look(first, risen, memory, held, 100.0, 1_000, 1, strengths={weak: 0.5})
    assert (found.counted[5], found.counted[10]) == (1, 1)
    alike = look(first, risen, memory, held, 100.0, 1_000, 1)
    assert (alike.counted[5], alike.counted[10]) == (2, 0)
