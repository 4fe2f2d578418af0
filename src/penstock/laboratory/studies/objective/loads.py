"""Five shapes of load for the study of the objective: one speed for each partition and second.

Speeds are shares of what one consumer carries. The same shape and seed always give the same load.
A day is squeezed into an hour, so a wave rises 24 times as fast as a real one.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Speeds: TypeAlias = NDArray[np.float64]

DAY_S = 3600
MINUTE_S = 60
# No partition is more than a consumer carries in the shortest batches: no group could help it.
PARTITION_MAX = 0.6
# How many partitions a spike reaches, of all.
_SPIKE_PART = 4
_SPIKES_PER_HOUR = 20
_STEPS_PER_HOUR = 6
_WALK_STEP = 0.002
_WALK_EVERY_S = 1


def made_load(shape: str, seconds: int, partitions: int, seed: int) -> Speeds:
    """One row for each second, one column for each partition."""
    chance = np.random.default_rng([seed, *shape.encode()])
    base = chance.uniform(0.1, 0.4, partitions)
    made = SHAPES[shape](base, seconds, chance)
    noise = chance.normal(1.0, 0.03, made.shape)
    return np.clip(made * noise, 0.0, PARTITION_MAX)


def _wave(base: Speeds, seconds: int, chance: np.random.Generator) -> Speeds:
    """A daily wave: from a fifth of its mean to nearly twice; partitions differ by minutes."""
    shift = chance.normal(0.0, DAY_S / 50, base.size)
    at = np.arange(seconds)[:, None] + shift[None, :]
    return base * (1 - 0.8 * np.cos(2 * np.pi * at / DAY_S)) * 0.75


def _minute_job(base: Speeds, seconds: int, chance: np.random.Generator) -> Speeds:
    """A job that writes for some seconds of every minute into a third of the partitions."""
    lasts_s = chance.integers(8, 20)
    at = np.arange(seconds) % MINUTE_S
    is_hit = np.arange(base.size) % 3 == 0
    factor = np.where((at < lasts_s)[:, None] & is_hit[None, :], 3.0, 1.0)
    return base * 0.5 * factor


def _walk(base: Speeds, seconds: int, chance: np.random.Generator) -> Speeds:
    """Each speed goes its own way, within a twentieth and a half of a consumer."""
    steps = chance.normal(0.0, _WALK_STEP, (seconds, base.size))
    rows, now = np.empty((seconds, base.size)), base.copy()
    for second in range(seconds):
        now = now + steps[second]
        now = np.where(now < 0.05, 0.1 - now, now)
        now = np.where(now > 0.5, 1.0 - now, now)
        rows[second] = now
    return rows


def _step(base: Speeds, seconds: int, chance: np.random.Generator) -> Speeds:
    """All speeds change at once some times in an hour, by up to a half, and stay."""
    number = max(1, round(seconds / 3600 * _STEPS_PER_HOUR))
    at = np.sort(chance.integers(60, max(61, seconds), number))
    levels = chance.uniform(0.5, 1.0, number + 1)
    level = levels[np.searchsorted(at, np.arange(seconds), side="right")]
    return base * level[:, None]


def _spikes(base: Speeds, seconds: int, chance: np.random.Generator) -> Speeds:
    """Spikes of a few seconds to minutes on some partitions; most small, a few very large."""
    rows = np.tile(base * 0.5, (seconds, 1))
    for _ in range(max(1, round(seconds / 3600 * _SPIKES_PER_HOUR))):
        begins = chance.integers(0, seconds)
        lasts_s = int(chance.integers(5, 120))
        height = min(1 + chance.pareto(1.5), 5.0)
        hit = chance.choice(base.size, max(1, base.size // _SPIKE_PART), replace=False)
        rows[begins : begins + lasts_s, hit] *= height
    return rows


SHAPES: dict[str, Callable[[Speeds, int, np.random.Generator], Speeds]] = {
    "daily wave": _wave,
    "minute job": _minute_job,
    "random walk": _walk,
    "steps": _step,
    "spikes": _spikes,
}
