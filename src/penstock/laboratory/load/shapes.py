"""How a speed changes over time. Pure: seconds since the start in, bytes per second out.

Shapes are written as `constant:1MB/s`, `step:1MB/s,4MB/s,30s` and so on; a bare speed is constant.
A random walk is seeded, so the same arguments give the same load.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.settings.units import parse_duration, parse_speed


class Shape(Protocol):
    def speed_bytes_per_s(self, elapsed_s: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Constant:
    speed: float

    def speed_bytes_per_s(self, elapsed_s: float) -> float:  # noqa: ARG002 -- the same at all times
        return self.speed


@dataclass(frozen=True, slots=True)
class StepShape:
    before: float
    after: float
    at_s: float

    def speed_bytes_per_s(self, elapsed_s: float) -> float:
        return self.before if elapsed_s < self.at_s else self.after


@dataclass(frozen=True, slots=True)
class Ramp:
    start: float
    end: float
    over_s: float

    def speed_bytes_per_s(self, elapsed_s: float) -> float:
        done = 1.0 if self.over_s == 0 else min(1.0, elapsed_s / self.over_s)
        return self.start + (self.end - self.start) * done


@dataclass(frozen=True, slots=True)
class Sine:
    mean: float
    amplitude: float
    period_s: float

    def speed_bytes_per_s(self, elapsed_s: float) -> float:
        wave = math.sin(2 * math.pi * elapsed_s / self.period_s)
        return max(0.0, self.mean + self.amplitude * wave)


@dataclass(frozen=True, slots=True)
class Burst:
    """`peak` for `for_s` at the end of every `every_s`."""

    base: float
    peak: float
    every_s: float
    for_s: float

    def speed_bytes_per_s(self, elapsed_s: float) -> float:
        quiet_s = self.every_s - self.for_s
        return self.base if elapsed_s % self.every_s < quiet_s else self.peak


class Walk:
    """Every `every_s` the speed changes by up to `delta`, never below zero nor above `most`."""

    def __init__(self, start: float, delta: float, every_s: float, seed: str) -> None:
        self._delta, self._every_s = delta, every_s
        self._most = 2 * start + 10 * delta
        self._chance = random.Random(seed)
        self._speeds = [start]

    def speed_bytes_per_s(self, elapsed_s: float) -> float:
        index = int(elapsed_s / self._every_s)
        while len(self._speeds) <= index:
            changed = self._speeds[-1] + self._chance.uniform(-self._delta, self._delta)
            self._speeds.append(min(self._most, max(0.0, changed)))
        return self._speeds[index]


@dataclass(frozen=True, slots=True)
class Replay:
    """Recorded speeds: `speeds[i]` holds from `starts_s[i]` on; the last one stays."""

    starts_s: Sequence[float]
    speeds: Sequence[float]

    def speed_bytes_per_s(self, elapsed_s: float) -> float:
        return self.speeds[max(0, bisect_right(self.starts_s, elapsed_s) - 1)]


def _positive(text: str) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise ValueError(f"{text!r}: this duration must be longer than 0s")
    return seconds


_SPEED, _TIME = parse_speed, _positive
_FORMS: dict[str, tuple[str, tuple[Callable[[str], float], ...]]] = {
    "constant": ("constant:SPEED", (_SPEED,)),
    "step": ("step:BEFORE,AFTER,AT", (_SPEED, _SPEED, parse_duration)),
    "ramp": ("ramp:START,END,OVER", (_SPEED, _SPEED, _TIME)),
    "sine": ("sine:MEAN,AMPLITUDE,PERIOD", (_SPEED, _SPEED, _TIME)),
    "burst": ("burst:BASE,PEAK,EVERY,FOR", (_SPEED, _SPEED, _TIME, _TIME)),
    "walk": ("walk:START,DELTA,EVERY", (_SPEED, _SPEED, _TIME)),
}
SHAPE_FORMS = tuple(form for form, _ in _FORMS.values())


def parse_shape(text: str, *, seed: str) -> Shape:
    """`1MB/s` or one of the forms; `seed` makes a walk repeatable."""
    kind, colon, rest = text.partition(":")
    if not colon:
        return Constant(parse_speed(text))
    if kind not in _FORMS:
        raise ValueError(f"unknown shape {kind!r}; use one of {', '.join(SHAPE_FORMS)}")
    form, parsers = _FORMS[kind]
    parts = rest.split(",")
    if len(parts) != len(parsers):
        raise ValueError(f"{text!r}: expected {form}")
    numbers = [parse(part) for parse, part in zip(parsers, parts, strict=True)]
    if kind == "walk":
        start, delta, every_s = numbers
        return Walk(start, delta, every_s, seed)
    if kind == "burst" and numbers[3] > numbers[2]:
        raise ValueError(f"{text!r}: a burst cannot last longer than the time between bursts")
    made: dict[str, Callable[..., Shape]] = {
        "constant": Constant,
        "step": StepShape,
        "ramp": Ramp,
        "sine": Sine,
        "burst": Burst,
    }
    return made[kind](*numbers)
