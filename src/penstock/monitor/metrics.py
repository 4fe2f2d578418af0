"""Keeps the monitor's metrics: counts rounds, and shows the newest measurement to who asks."""

from collections.abc import Iterator

from penstock.metrics import Sample
from penstock.metrics.of_monitor import PUBLISHING, ROUND_SECONDS, ROUNDS
from penstock.monitor.core.figures import measured_samples
from penstock.monitor.core.meter import MeasuredSpeeds
from penstock.telemetry import MetricStore


class MonitorMetrics:
    def __init__(self, store: MetricStore) -> None:
        self._store = store
        self._newest: MeasuredSpeeds | None = None
        store.ask(self._samples)

    def round_ended(self, speeds: MeasuredSpeeds | None, seconds: float) -> None:
        self._newest = speeds
        self._store.observe(ROUND_SECONDS, seconds)
        if speeds is None:
            self._store.count(ROUNDS, "without_layout")

    def publishes(self, *, is_mine: bool) -> None:
        self._store.set(PUBLISHING, float(is_mine))
        self._store.count(ROUNDS, "published" if is_mine else "waited")

    def _samples(self) -> Iterator[Sample]:
        speeds = self._newest
        if speeds is not None:
            many = self._store.tells_partitions(len(speeds.names))
            yield from measured_samples(speeds, with_partitions=many)
