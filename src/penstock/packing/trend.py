"""Where speeds are heading, so that a move made now is not undone in the next run.

A pure fold over measurements: each speed's slope is smoothed exponentially over time, and the
forecast is the speed now plus the slope over the horizon. What was seen only once has no slope.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp

from penstock.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Trend:
    """What is remembered between measurements."""

    at_s: float | None = None
    speed_bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    slope_bytes_per_s2: Mapping[TopicPartition, float] = field(default_factory=dict)


def observe(
    trend: Trend,
    write_speed_bytes_per_s: Mapping[TopicPartition, float],
    now_s: float,
    memory_s: float = 60.0,
) -> Trend:
    """The trend after one more measurement. Time that does not advance teaches nothing."""
    if trend.at_s is None or now_s <= trend.at_s:
        return Trend(now_s, dict(write_speed_bytes_per_s), dict(trend.slope_bytes_per_s2))
    elapsed_s = now_s - trend.at_s
    weight = 1 - exp(-elapsed_s / memory_s)
    slopes: dict[TopicPartition, float] = {}
    for partition, speed in write_speed_bytes_per_s.items():
        before = trend.speed_bytes_per_s.get(partition)
        if before is not None:
            latest = (speed - before) / elapsed_s
            known = trend.slope_bytes_per_s2.get(partition, 0.0)
            slopes[partition] = known + weight * (latest - known)
    return Trend(now_s, dict(write_speed_bytes_per_s), slopes)


def forecast(trend: Trend, horizon_s: float) -> dict[TopicPartition, float]:
    """What each partition is expected to write `horizon_s` from the last measurement; never < 0."""
    return {
        partition: max(0.0, speed + trend.slope_bytes_per_s2.get(partition, 0.0) * horizon_s)
        for partition, speed in trend.speed_bytes_per_s.items()
    }
