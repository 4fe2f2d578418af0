"""Which speeds are established, and how high they were lately."""

from kit.packing.packing_cases import named
from penstock.packing.speed_memory import PIECES, SpeedMemory, remember


def remembered(*speeds: float | None, step_ms: int = 1_000, lasting_ms: int = 2_000) -> SpeedMemory:
    """One partition, measured at equal intervals; None is a measurement without it."""
    memory = SpeedMemory()
    for number, speed in enumerate(speeds):
        found = {} if speed is None else {named(0): speed}
        memory = remember(memory, found, number * step_ms, lasting_ms, 20_000)
    return memory


def test_a_speed_is_established_when_it_lasts() -> None:
    """The lowest of the last two seconds counts: a jump after that time, a fall at once."""
    assert remembered(10, 10, 90).established[named(0)] == 10
    assert remembered(10, 10, 90, 90).established[named(0)] == 10
    assert remembered(10, 10, 90, 90, 90).established[named(0)] == 90
    assert remembered(90, 90, 90, 10).established[named(0)] == 10


def test_one_measurement_of_a_slow_monitor_establishes_nothing() -> None:
    """Two at least are compared, however far apart; without a window only the newest counts."""
    assert remembered(10, 90, step_ms=15_000).established[named(0)] == 10
    assert remembered(10, 90, 90, step_ms=15_000).established[named(0)] == 90
    assert remembered(10, 90, lasting_ms=0).established[named(0)] == 90


def test_the_highest_speed_counts_for_its_time() -> None:
    """Twenty seconds after the burst it is forgotten, and not before; what is gone is gone."""
    burst = (10.0, 90.0, 90.0, 90.0)
    assert remembered(*burst, *[10.0] * 17).highest[named(0)] == 90
    assert remembered(*burst, *[10.0] * 25).highest[named(0)] == 10
    assert remembered(*burst, None).highest == {}


def test_the_highest_speeds_are_kept_in_few_pieces() -> None:
    """However often is measured, the memory stays small."""
    memory = remembered(*[10.0] * 500, step_ms=100)
    assert len(memory.pieces) <= PIECES + 1
    assert len(memory.recent) <= 21
