"""Generates streams of write speeds: the published random walk, and loads of typical services.

Speeds are whole percents of a consumer's capacity. The same seed always gives the same stream, so a
study is repeatable from its seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from penstock.laboratory.packing_replay.stream import Stream
from penstock.model import TopicPartition

Percents = NDArray[np.int64]

UNIFORM_START = "uniform"


class Kind(StrEnum):
    """The values of `--generate`."""

    WALK = "walk"
    WAVE = "wave"
    BURST = "burst"
    HOT = "hot"
    STEADY = "steady"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parameters of a generated stream. `start` is "uniform" or a percentage for all."""

    kind: Kind = Kind.WALK
    partitions: int = 200
    delta: int = 10
    measurements: int = 501
    seed: int = 0
    start: str = UNIFORM_START

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("partitions", self.partitions, 1, 100_000),
            ("delta", self.delta, 0, 100),
            ("measurements", self.measurements, 1, 1_000_000),
            ("seed", self.seed, 0, 2**63 - 1),
        ):
            if not low <= value <= high:
                raise ValueError(f"{name} is a whole number from {low} to {high}, got {value}")
        if self.start != UNIFORM_START and not (
            self.start.isascii() and self.start.isdigit() and int(self.start) <= 100
        ):
            raise ValueError(f"start is {UNIFORM_START!r} or a percentage, got {self.start!r}")


def generate(recipe: Recipe, capacity_bytes_per_s: float = 100) -> Stream:
    """Generate the stream, with percents scaled to the capacity."""
    percents = _GENERATORS[recipe.kind](recipe, np.random.default_rng(recipe.seed))
    names = tuple(TopicPartition("generated", n) for n in range(recipe.partitions))
    rows = tuple(
        tuple(_scaled(int(percent), capacity_bytes_per_s) for percent in row) for row in percents
    )
    return Stream(names, rows)


def _scaled(percent: int, capacity: float) -> float:
    scaled = percent * capacity / 100
    return int(scaled) if scaled == int(scaled) else scaled


def _start(recipe: Recipe, chance: np.random.Generator) -> Percents:
    if recipe.start == UNIFORM_START:
        return chance.integers(0, 101, recipe.partitions)
    return np.full(recipe.partitions, int(recipe.start), dtype=np.int64)


def _walk(recipe: Recipe, chance: np.random.Generator) -> Percents:
    """The published stream: every speed steps by up to delta, within 0 and 100."""
    rows = [_start(recipe, chance)]
    for _ in range(recipe.measurements - 1):
        step = chance.integers(-recipe.delta, recipe.delta + 1, recipe.partitions)
        rows.append(np.clip(rows[-1] + step, 0, 100))
    return np.stack(rows)


def _wave(recipe: Recipe, chance: np.random.Generator) -> Percents:
    """One day over the whole stream: a trough at both ends, the peak in the middle."""
    half = _start(recipe, chance) / 2
    day = np.linspace(0, 2 * np.pi, recipe.measurements)
    lift = 1 - 0.8 * np.cos(day)
    noise = _noise(recipe, chance)
    return _percents(half[None, :] * lift[:, None] + noise)


def _burst(recipe: Recipe, chance: np.random.Generator) -> Percents:
    """Slow partitions with occasional bursts at four times their speed."""
    calm = _start(recipe, chance) / 4
    shape = (recipe.measurements, recipe.partitions)
    begins = chance.random(shape) < 1 / 200
    lasts = chance.integers(5, 30, shape)
    bursting = np.zeros(shape, dtype=bool)
    for measurement, partition in np.argwhere(begins):
        bursting[measurement : measurement + lasts[measurement, partition], partition] = True
    factor = np.where(bursting, 4.0, 1.0)
    return _percents(calm[None, :] * factor + _noise(recipe, chance))


def _hot(recipe: Recipe, chance: np.random.Generator) -> Percents:
    """A steady group; one partition in fifty rises to a consumer's capacity and falls back."""
    calm = np.tile(_start(recipe, chance) / 3, (recipe.measurements, 1))
    hot = chance.choice(recipe.partitions, max(1, recipe.partitions // 50), replace=False)
    ramp = np.minimum(1, np.abs(np.sin(np.linspace(0, 2 * np.pi, recipe.measurements))) * 1.2)
    calm[:, hot] = np.maximum(calm[:, hot], 100 * ramp[:, None])
    return _percents(calm + _noise(recipe, chance))


def _steady(recipe: Recipe, chance: np.random.Generator) -> Percents:
    """Every speed stays constant, within delta."""
    return _percents(_start(recipe, chance)[None, :] + _noise(recipe, chance))


def _noise(recipe: Recipe, chance: np.random.Generator) -> NDArray[np.float64]:
    shape = (recipe.measurements, recipe.partitions)
    return chance.integers(-recipe.delta, recipe.delta + 1, shape).astype(np.float64)


def _percents(values: NDArray[np.float64]) -> Percents:
    return np.clip(np.rint(values), 0, 100).astype(np.int64)


_GENERATORS: dict[Kind, Callable[[Recipe, np.random.Generator], Percents]] = {
    Kind.WALK: _walk,
    Kind.WAVE: _wave,
    Kind.BURST: _burst,
    Kind.HOT: _hot,
    Kind.STEADY: _steady,
}
