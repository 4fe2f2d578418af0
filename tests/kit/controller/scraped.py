"""A told controller whose metrics are kept, as its process keeps them."""

from kit.controller.story import CATALOGUE, Storyteller
from penstock.controller.core import inputs
from penstock.controller.process.metrics import ControllerMetrics
from penstock.metrics import Kind, Metric, Process
from penstock.settings import Settings, changed_settings
from penstock.telemetry import MetricStore


class ScrapedStory(Storyteller):
    """A storyteller that hands each step to the metrics."""

    def __init__(self, *lines: str, lag_names: bool = False, partitions: int = 100) -> None:
        super().__init__()
        settings: Settings = changed_settings(CATALOGUE, {"telemetry.freshness_objective": "60s"})
        self.store = MetricStore(
            "g",
            Process.CONTROLLER,
            partition_series_max=partitions,
            with_lag_names=lag_names,
        )
        self.store.is_served = True
        self.metrics = ControllerMetrics(settings, self.store, now_ms=lambda: self.now_ms)
        for line in lines:
            self.tell(line)

    def tell(self, line: str) -> list[str]:
        told = super().tell(line)
        if line.startswith("a controller starts"):
            assert self.state is not None
            self.metrics.begun(self.state)
        return told

    def give(self, given: inputs.Input) -> list[str]:
        before = self.state
        told = super().give(given)
        assert before is not None
        assert self.state is not None
        self.metrics.stepped(before, self.state, 0.002, is_degraded=False)
        return told

    def value(self, metric: Metric, *labels: str) -> float | None:
        """None if there is no such series."""
        return self.values(metric).get(labels)

    def values(self, metric: Metric) -> dict[tuple[str, ...], float]:
        collected = self.store.collect()
        if metric.kind is Kind.HISTOGRAM:
            timed = collected.histograms.get(metric, {})
            return {labels: sum(one.in_bucket) for labels, one in timed.items()}
        return {one.labels: one.value for one in collected.samples if one.metric is metric}
