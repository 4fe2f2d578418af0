"""The newest measurement as metrics. A partition whose speed is not known has no series."""

from collections.abc import Iterator

import numpy as np

from penstock.metrics import Sample
from penstock.metrics.of_monitor import (
    PARTITION_WRITE_SPEED,
    PARTITIONS,
    PARTITIONS_UNKNOWN,
    SAMPLE_AGE,
    TOPIC_WRITE_SPEED,
)
from penstock.monitor.core.meter import MeasuredSpeeds


def measured_samples(speeds: MeasuredSpeeds, *, with_partitions: bool) -> Iterator[Sample]:
    known = np.isfinite(speeds.bytes_per_s)
    yield Sample(PARTITIONS, (), len(speeds.names))
    yield Sample(PARTITIONS_UNKNOWN, (), int((~known).sum()))
    yield Sample(SAMPLE_AGE, (), speeds.newest_sample_age_s)
    by_topic: dict[str, float] = {}
    for (topic, partition), speed, is_known in zip(
        speeds.names, speeds.bytes_per_s.tolist(), known.tolist(), strict=True
    ):
        if not is_known:
            continue
        by_topic[topic] = by_topic.get(topic, 0.0) + speed
        if with_partitions:
            yield Sample(PARTITION_WRITE_SPEED, (topic, str(partition)), speed)
    for topic, speed in by_topic.items():
        yield Sample(TOPIC_WRITE_SPEED, (topic,), speed)
