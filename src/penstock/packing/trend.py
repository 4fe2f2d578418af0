"""Where write speeds are heading, so that a move made now is not undone by the next plan.

A pure fold over measurements: each speed's slope is smoothed exponentially over time, and the
forecast is the speed now plus the slope over the look-ahead. A partition seen only once has no
slope.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp

from penstock.model import TopicPartition

# How long a slope is remembered. A minute is long against the noise of single measurements and
# short against a load that changes over the day.
MEMORY_MS = 60_000


@dataclass(frozen=True, slots=True)
class Trend:
    """What is remembered between measurements."""

    at_ms: int | None = None
    speed_bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    slope_bytes_per_s2: Mapping[TopicPartition, float] = field(default_factory=dict)


def observe(
    trend: Trend, write_speed_bytes_per_s: Mapping[TopicPartition, float], now_ms: int
) -> Trend:
    """The trend after one more measurement. A clock that stands still adds nothing to a slope."""
    if trend.at_ms is None or now_ms <= trend.at_ms:
        return Trend(now_ms, dict(write_speed_bytes_per_s), dict(trend.slope_bytes_per_s2))
    elapsed_ms = now_ms - trend.at_ms
    weight = 1 - exp(-elapsed_ms / MEMORY_MS)
    slopes: dict[TopicPartition, float] = {}
    for partition, speed in write_speed_bytes_per_s.items():
        before = trend.speed_bytes_per_s.get(partition)
        if before is not None:
            latest = (speed - before) / (elapsed_ms / 1_000)
            known = trend.slope_bytes_per_s2.get(partition, 0.0)
            slopes[partition] = known + weight * (latest - known)
    return Trend(now_ms, dict(write_speed_bytes_per_s), slopes)


def forecast(trend: Trend, look_ahead_ms: int) -> dict[TopicPartition, float]:
    """The speed each partition is expected to have by then; never below 0."""
    seconds = look_ahead_ms / 1_000
    return {
        partition: max(0.0, speed + trend.slope_bytes_per_s2.get(partition, 0.0) * seconds)
        for partition, speed in trend.speed_bytes_per_s.items()
    }
