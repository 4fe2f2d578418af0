"""What all consumers together had carried at some moments, and how fast that is."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CarriedSample:
    """Everything that was reported until then has been read, and nothing that came later."""

    at_ms: int
    carried_bytes: int
    # How many consumers had partitions.
    working: int


def since(samples: Sequence[CarriedSample], since_ms: float) -> list[CarriedSample]:
    return [one for one in samples if one.at_ms >= since_ms]


def most_working(samples: Sequence[CarriedSample]) -> int:
    return max((one.working for one in samples), default=0)


def average_bytes_per_s(samples: Sequence[CarriedSample]) -> float | None:
    """From the first to the last; None when there are not two."""
    return _bytes_per_s(samples[0], samples[-1]) if len(samples) > 1 else None


def highest_bytes_per_s(samples: Sequence[CarriedSample], over_samples: int) -> float | None:
    """The most that was carried over so many samples; None when there are not as many."""
    return max(map(_bytes_per_s, samples, samples[over_samples:]), default=None)


def _bytes_per_s(first: CarriedSample, last: CarriedSample) -> float:
    return (last.carried_bytes - first.carried_bytes) * 1_000 / (last.at_ms - first.at_ms)
