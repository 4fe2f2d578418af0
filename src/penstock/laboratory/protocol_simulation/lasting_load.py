"""Loads that last, once the faults are over: they show whether the group keeps the right size.

Under faults a group has good reasons to start and end consumers. Here it has none but its load, so
its size and what it starts and ends have narrow bounds (L6, L7), and growth that does not help must
end (L8). Each load begins with one that the group carries easily.
"""

import math
import random
from collections.abc import Callable

from penstock.laboratory.protocol_simulation.scenario import LastingLoad
from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup
from penstock.laboratory.protocol_simulation.size_checks import (
    CostOfLastingLoad,
    consumers_needed,
)

LOOK_MS = 500
SETTLE_MS = 20_000
# Of the mean: how slow and how fast a partition may be.
SPREAD = (0.7, 1.3)
# How a growing load grows.
GROWTH_STEPS = (1.5, 1.4, 1.35)


def endure(group: SimulatedGroup) -> None:
    """Put the scenario's lasting load on the group, if it has one."""
    kind = group.scenario.lasting_load
    if kind is not None:
        _LOADS[kind](group, random.Random(group.scenario.seed + 4))


def _write(group: SimulatedGroup, chance: random.Random, capacities: float) -> None:
    """As much as this many consumers carry when they are full."""
    mean = capacities * group.capacity_bytes_per_s / len(group.logs)
    for partition in sorted(group.logs):
        log = group.logs[partition]
        log.set_speed(group.clock.now_ms, mean * chance.uniform(*SPREAD))


def _change_speeds(group: SimulatedGroup, factor: float) -> None:
    for log in group.logs.values():
        log.set_speed(group.clock.now_ms, log.records_per_s * factor)


def _watch(group: SimulatedGroup, cost: CostOfLastingLoad, for_ms: int) -> None:
    until_ms = group.clock.now_ms + for_ms
    while group.clock.now_ms < until_ms:
        group.run_until(group.clock.now_ms + LOOK_MS)
        cost.check_size()


def _backlog(group: SimulatedGroup, chance: random.Random) -> None:
    """The lake is away for long. What has piled up by then is carried by a few more consumers."""
    _write(group, chance, 3.2)
    group.run_until(group.clock.now_ms + SETTLE_MS)
    cost = CostOfLastingLoad(group, consumers_needed(group), falls_behind=True)
    away_ms = 40_000
    group.lake_away_until_ms = group.clock.now_ms + away_ms
    _watch(group, cost, away_ms + 20_000)
    cost.check_cost()


def _bursts(group: SimulatedGroup, chance: random.Random) -> None:
    """Short bursts, again and again: the group has what they need, and keeps it between them."""
    _write(group, chance, 2.3)
    group.run_until(group.clock.now_ms + SETTLE_MS)
    _change_speeds(group, 2.0)
    cost = CostOfLastingLoad(group, consumers_needed(group), falls_behind=False)
    for _ in range(10):
        _watch(group, cost, 3_000)
        _change_speeds(group, 0.5)
        _watch(group, cost, 2_000)
        _change_speeds(group, 2.0)
    cost.check_cost()


def _hot_partition(group: SimulatedGroup, chance: random.Random) -> None:
    """One partition is too fast for any consumer, and then the load of the others falls."""
    _write(group, chance, 5.0)
    hot = group.logs[chance.choice(sorted(group.logs))]
    hot_bytes_per_s = 3.0 * group.capacity_bytes_per_s
    hot.set_speed(group.clock.now_ms, hot_bytes_per_s)
    group.run_until(group.clock.now_ms + 2 * SETTLE_MS)
    cost = CostOfLastingLoad(group, consumers_needed(group), falls_behind=False)
    _change_speeds(group, 0.25)
    hot.set_speed(group.clock.now_ms, hot_bytes_per_s)
    _watch(group, cost, 20_000)


def _shared_limit(group: SimulatedGroup, chance: random.Random) -> None:
    """More is written than all consumers together can carry, however many they are."""
    if group.scenario.lasting_load_grows:
        _grow_to_the_limit(group, chance)
        return
    _write(group, chance, 0.95 * group.scenario.carried_by_all)
    group.run_until(group.clock.now_ms + SETTLE_MS)
    _change_speeds(group, chance.choice((1.15, 1.5)) / 0.95)
    group.run_until(group.clock.now_ms + 45_000)


def _grow_to_the_limit(group: SimulatedGroup, chance: random.Random) -> None:
    """The group grows with its load, and is over the shared limit for a while, again and again.

    In between it keeps up: what it measured at the limit must not count then.
    """
    low, high = 0.85, 1.15
    _write(group, chance, low * group.scenario.carried_by_all / math.prod(GROWTH_STEPS))
    group.run_until(group.clock.now_ms + SETTLE_MS)
    for factor in GROWTH_STEPS:
        _change_speeds(group, factor)
        group.run_until(group.clock.now_ms + 8_000)
    group.run_until(group.clock.now_ms + SETTLE_MS)
    for _ in range(4):
        _change_speeds(group, high / low)
        group.run_until(group.clock.now_ms + 10_000)
        _change_speeds(group, low / high)
        group.run_until(group.clock.now_ms + SETTLE_MS)
    _change_speeds(group, high / low)
    group.run_until(group.clock.now_ms + 45_000)


_LOADS: dict[LastingLoad, Callable[[SimulatedGroup, random.Random], None]] = {
    LastingLoad.BACKLOG: _backlog,
    LastingLoad.BURSTS: _bursts,
    LastingLoad.HOT_PARTITION: _hot_partition,
    LastingLoad.SHARED_LIMIT: _shared_limit,
}
