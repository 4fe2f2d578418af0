"""The metrics of one process: counters and histograms as they grow, gauges when they are asked for.

    metrics = MetricStore("penstock", Process.CONSUMER)
    metrics.count(of_consumer.BATCHES, "3", "carried")
    metrics.observe(of_consumer.BATCH_SECONDS, 0.8, "3")
    metrics.ask(lambda: figures(newest_state))       # called for each scrape, by its thread

Counting costs a lock and an addition, so a process counts whether or not anybody scrapes it.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock import __version__
from penstock.metrics import Kind, Metric, Process, Sample
from penstock.metrics.of_every_process import BUILD

Labels = tuple[str, ...]
Source = Callable[[], Iterable[Sample]]


@dataclass(slots=True)
class Observed:
    """One series of a histogram: how many were at most each bound, and the sum of all."""

    in_bucket: list[int]
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything at one moment."""

    samples: list[Sample]
    histograms: dict[Metric, dict[Labels, Observed]] = field(default_factory=dict)


class MetricStore:
    """Safe to use from several threads."""

    def __init__(
        self,
        group: str,
        process: Process,
        *,
        partition_series_max: int = 0,
        with_lag_names: bool = False,
    ) -> None:
        """Series for each partition are told while there are at most so many partitions."""
        self.group = group
        self.process = process
        self.partition_series_max = partition_series_max
        self.with_lag_names = with_lag_names
        # Whether somebody may scrape: then what costs something is kept too.
        self.is_served = False
        self._lock = threading.Lock()
        self._values: dict[Metric, dict[Labels, float]] = {}
        self._observed: dict[Metric, dict[Labels, Observed]] = {}
        self._sources: list[Source] = []
        self.set(BUILD, 1, __version__, process.value)

    def count(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Add to a counter; `by=0` begins it at 0, so that its first growth can be seen."""
        _require(metric, Kind.COUNTER, labels)
        with self._lock:
            series = self._values.setdefault(metric, {})
            series[labels] = series.get(labels, 0) + by

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge that stays until it is set again."""
        _require(metric, Kind.GAUGE, labels)
        with self._lock:
            self._values.setdefault(metric, {})[labels] = value

    def observe(self, metric: Metric, seconds: float, *labels: str) -> None:
        _require(metric, Kind.HISTOGRAM, labels)
        with self._lock:
            series = self._observed.setdefault(metric, {})
            if labels not in series:
                series[labels] = Observed([0] * (len(metric.buckets) + 1))
            one = series[labels]
            one.in_bucket[bisect_left(metric.buckets, seconds)] += 1
            one.total += seconds

    def ask(self, source: Source) -> None:
        """Ask there for gauges at every scrape."""
        self._sources.append(source)

    def tells_partitions(self, partitions: int) -> bool:
        """Whether there are series for each of so many partitions."""
        return partitions <= self.partition_series_max

    def collect(self) -> Collected:
        with self._lock:
            samples = [
                Sample(metric, labels, value)
                for metric, series in self._values.items()
                for labels, value in series.items()
            ]
            histograms = {
                metric: {
                    labels: Observed(list(one.in_bucket), one.total)
                    for labels, one in series.items()
                }
                for metric, series in self._observed.items()
            }
        for source in self._sources:
            samples += source()
        return Collected(samples, histograms)


def _require(metric: Metric, kind: Kind, labels: Labels) -> None:
    if metric.kind is not kind or len(labels) != len(metric.labels):
        raise ValueError(f"{metric.name} is a {metric.kind} with the labels {metric.labels}")
