"""The table of metrics keeps Prometheus's conventions."""

import re

import pytest

from kit.promtool import require_clean_metrics
from penstock.metrics import Kind, Metric, Process
from penstock.metrics.catalogue import METRICS
from penstock.metrics.definition import SECONDS_BUCKETS, counter
from penstock.metrics.of_every_process import BUILD
from penstock.telemetry import MetricStore
from penstock.telemetry.exposition import rendered

LABELS = {
    "bound",
    "code",
    "condition",
    "consumer",
    "event",
    "how",
    "outcome",
    "partition",
    "process",
    "reason",
    "source",
    "stage",
    "state",
    "table",
    "topic",
    "version",
}


def store_of_all() -> MetricStore:
    """One value for every metric there is."""
    store = MetricStore("penstock", Process.CONTROLLER, partition_series_max=1)
    for metric in METRICS:
        labels = [f"a-{name}" for name in metric.labels]
        if metric.kind is Kind.COUNTER:
            store.count(metric, *labels)
        elif metric.kind is Kind.HISTOGRAM:
            store.observe(metric, 0.3, *labels)
        elif metric is not BUILD:
            store.set(metric, 1.5, *labels)
    return store


def test_names_are_different_and_of_ours() -> None:
    """A name is used once, and begins with penstock_ unless it is meant to be another's."""
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"[a-z][a-z_]+", metric.name)
        assert metric.name.startswith("kafka_" if metric.is_foreign else "penstock_")
        assert set(metric.labels) <= LABELS
        assert metric.sentence.endswith(".")


def test_prometheus_finds_nothing_wrong_with_any_of_them() -> None:
    """`promtool check metrics` is silent about a text that has them all."""
    text = rendered(store_of_all()).decode()
    missing = [metric.name for metric in METRICS if f"# TYPE {metric.name} " not in text]
    assert missing == []
    require_clean_metrics(text)


def test_a_wrong_definition_is_refused() -> None:
    """A counter without _total, and buckets without a histogram, cannot be defined."""
    with pytest.raises(ValueError, match="_total"):
        counter(Process.MONITOR, "rounds", "Rounds.")
    with pytest.raises(ValueError, match="buckets"):
        Metric("penstock_x", Process.MONITOR, Kind.GAUGE, "X.", (), SECONDS_BUCKETS)
