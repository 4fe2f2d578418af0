"""The newest measurement as metrics."""

import numpy as np

from penstock.messages import SpeedSource
from penstock.metrics import Process
from penstock.metrics import of_monitor as of
from penstock.monitor.core.meter import MeasuredSpeeds
from penstock.monitor.metrics import MonitorMetrics
from penstock.telemetry import MetricStore


def speeds_of(*speeds: float) -> MeasuredSpeeds:
    row = np.array(speeds)
    names = [("orders", number) for number in range(len(speeds))]
    ids = ["x" * 22] * len(speeds)
    return MeasuredSpeeds(names, ids, SpeedSource.LOG_DIRS, 0.25, row, row, row, row, row, row)


def values(store: MetricStore) -> dict[tuple[str, ...], float]:
    samples = store.collect().samples
    return {(one.metric.name.removeprefix("penstock_"), *one.labels): one.value for one in samples}


def test_speeds_that_are_known_are_told() -> None:
    """An unknown one has no series, and is not part of its topic's sum as zero."""
    store = MetricStore("g", Process.MONITOR, partition_series_max=3)
    metrics = MonitorMetrics(store)
    assert "monitor_partitions" not in {key[0] for key in values(store)}
    metrics.round_ended(speeds_of(10.0, float("nan"), 5.0), 0.1)
    metrics.publishes(is_mine=True)
    found = values(store)
    assert found["partition_write_bytes_per_second", "orders", "0"] == 10.0
    assert ("partition_write_bytes_per_second", "orders", "1") not in found
    assert found["topic_write_bytes_per_second", "orders"] == 15.0
    assert (found["monitor_partitions",], found["monitor_partitions_unknown",]) == (3, 1)
    assert found["monitor_sample_age_seconds",] == 0.25
    assert found["monitor_publishing",] == 1
    assert found["monitor_rounds_total", "published"] == 1


def test_too_many_partitions_have_no_series_of_their_own() -> None:
    """Their topics have; rounds without a layout, and of a monitor that waits, are counted."""
    store = MetricStore("g", Process.MONITOR, partition_series_max=1)
    metrics = MonitorMetrics(store)
    metrics.round_ended(speeds_of(1.0, 2.0), 0.1)
    found = values(store)
    assert not [key for key in found if key[0] == of.PARTITION_WRITE_SPEED.name[9:]]
    assert found["topic_write_bytes_per_second", "orders"] == 3.0
    metrics.round_ended(None, 0.1)
    metrics.publishes(is_mine=False)
    found = values(store)
    assert found["monitor_rounds_total", "without_layout"] == 1
    assert found["monitor_rounds_total", "waited"] == 1
    assert "monitor_partitions" not in {key[0] for key in found}
