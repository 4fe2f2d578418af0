"""The recording of one partition, and speed curves made from it. Pure.

The producer's side is a list of (time, acknowledged records); the monitor's side is what it
published. Times are seconds since the run began, on one machine's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.laboratory.studies.monitor.stored_bytes import StoredBytes
from penstock.monitor.core.filters import SpeedFilter


@dataclass(frozen=True, slots=True)
class Published:
    """One measurement of one partition; None means unknown."""

    at_s: float
    sampled_at_s: float
    raw_bytes_per_s: float | None
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Trace:
    run: str
    lane: str
    partition: int
    step_at_s: float | None
    seconds: float
    acknowledged: tuple[tuple[float, int], ...]
    stored: StoredBytes
    published: tuple[Published, ...]

    def produced_bytes(self, at_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Log bytes of the records acknowledged by these times."""
        times, records = zip(*self.acknowledged, strict=True)
        return self.stored.up_to(np.interp(at_s, times, records, left=0.0))

    def produced_bytes_per_s(self, from_s: float, to_s: float) -> float:
        before, after = self.produced_bytes(np.array([from_s, to_s]))
        return float(after - before) / (to_s - from_s)


@dataclass(frozen=True, slots=True)
class Curve:
    """Speeds over time, from one filter."""

    at_s: tuple[float, ...]
    bytes_per_s: tuple[float, ...]


def published_curve(trace: Trace) -> Curve:
    known = [one for one in trace.published if one.bytes_per_s is not None]
    return Curve(tuple(one.at_s for one in known), tuple(one.bytes_per_s or 0.0 for one in known))


def filtered_curve(trace: Trace, speed_filter: SpeedFilter, *, window_s: float) -> Curve:
    """The result of another filter on the same intervals."""
    ends = [one for one in trace.published if one.raw_bytes_per_s is not None]
    at_s, speeds = [], []
    durations = np.diff([one.sampled_at_s for one in ends], prepend=np.nan)
    amounts = durations * np.array([one.raw_bytes_per_s or 0.0 for one in ends])
    for newest in range(1, len(ends)):
        oldest = newest
        while oldest > 1 and durations[oldest - 1 : newest + 1].sum() <= window_s:
            oldest -= 1
        rows = slice(oldest, newest + 1)
        speed = speed_filter.speeds(durations[rows, None], amounts[rows, None])[0]
        at_s.append(ends[newest].at_s)
        speeds.append(float(speed))
    return Curve(tuple(at_s), tuple(speeds))


def produced_curve(trace: Trace, *, every_s: float = 0.25, over_s: float = 1.0) -> Curve:
    """The producer's speed over the last second, four times a second."""
    times = np.arange(over_s, trace.seconds, every_s)
    speeds = (trace.produced_bytes(times) - trace.produced_bytes(times - over_s)) / over_s
    return Curve(tuple(times.tolist()), tuple(speeds.tolist()))


def only(curve: Curve, from_s: float, to_s: float) -> Curve:
    kept = [
        pair
        for pair in zip(curve.at_s, curve.bytes_per_s, strict=True)
        if from_s <= pair[0] <= to_s
    ]
    return Curve(tuple(pair[0] for pair in kept), tuple(pair[1] for pair in kept))


def interpolated(curve: Curve, at_s: Sequence[float]) -> list[float]:
    return [float(one) for one in np.interp(at_s, curve.at_s, curve.bytes_per_s)]
