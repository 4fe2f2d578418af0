"""Summarises a replay as one row of a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from penstock.laboratory.packing_replay.replay import ReplayStep
from penstock.packing.scores import cardinal_bin_scores, consumer_hours, per_hour


@dataclass(frozen=True, slots=True)
class Summary:
    """One algorithm on one stream. The first assignment counts only for CBS."""

    algorithm: str
    consumers: tuple[int, ...]
    moved_score: tuple[float, ...]
    moved_partitions: int
    balance: float
    over_capacity_measurements: int
    runs: int
    time_per_run_ms: float

    @property
    def consumers_mean(self) -> float:
        return fsum(self.consumers) / len(self.consumers)

    @property
    def moved_score_mean(self) -> float:
        """R: the mean over all measurements but the first."""
        return fsum(self.moved_score) / len(self.moved_score) if self.moved_score else 0.0


def summarise(algorithm: str, steps: Iterable[ReplayStep]) -> Summary:
    taken = list(steps)
    times = [step.took_s for step in taken if step.took_s is not None]
    return Summary(
        algorithm=algorithm,
        consumers=tuple(step.consumers for step in taken),
        moved_score=tuple(step.moved_score for step in taken[1:]),
        moved_partitions=sum(step.moved_partitions for step in taken),
        balance=fsum(step.balance for step in taken) / len(taken),
        over_capacity_measurements=sum(step.over_capacity for step in taken),
        runs=len(times),
        time_per_run_ms=1000 * fsum(times) / max(1, len(times)),
    )


def table(
    summaries: Sequence[Summary], lower_bounds: Sequence[int], interval_s: float
) -> list[Mapping[str, Any]]:
    """One row per algorithm, with rounded numbers."""
    scores = cardinal_bin_scores({s.algorithm: s.consumers for s in summaries})
    bound = fsum(lower_bounds) / len(lower_bounds)
    return [
        {
            "algorithm": s.algorithm,
            "consumers_mean": round(s.consumers_mean, 3),
            "consumers_max": max(s.consumers),
            "lower_bound_mean": round(bound, 3),
            "cbs": round(scores[s.algorithm], 5),
            "r": round(s.moved_score_mean, 4),
            "moves": s.moved_partitions,
            "moves_per_hour": round(per_hour(s.moved_partitions, len(s.consumers), interval_s), 2),
            "consumer_hours": round(consumer_hours(s.consumers, interval_s), 3),
            "over_capacity_s": round(s.over_capacity_measurements * interval_s, 3),
            "balance": round(s.balance, 4),
            "runs": s.runs,
            "time_per_run_ms": round(s.time_per_run_ms, 3),
        }
        for s in summaries
    ]
