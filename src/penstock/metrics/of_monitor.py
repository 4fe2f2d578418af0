"""What the monitor measures, and how it does."""

from functools import partial

from penstock.metrics.definition import Process, counter, gauge, histogram

_gauge = partial(gauge, Process.MONITOR)

PARTITION_WRITE_SPEED = _gauge(
    "partition_write_bytes_per_second",
    "How fast the partition is written, in bytes of the broker's log, as published.",
    "topic",
    "partition",
)
TOPIC_WRITE_SPEED = _gauge(
    "topic_write_bytes_per_second",
    "The same, summed over the partitions of the topic whose speed is known.",
    "topic",
)
PARTITIONS = _gauge("monitor_partitions", "Partitions that are measured.")
PARTITIONS_UNKNOWN = _gauge(
    "monitor_partitions_unknown",
    "Partitions whose speed is not known now: too few samples, or their broker is silent.",
)
SAMPLE_AGE = _gauge(
    "monitor_sample_age_seconds", "How old the newest answer of the brokers was when it counted."
)
PUBLISHING = _gauge(
    "monitor_publishing",
    "1 while this monitor publishes; 0 while an older one does and this one waits.",
)
ROUNDS = counter(
    Process.MONITOR,
    "monitor_rounds_total",
    "Rounds of questions to the brokers; `outcome` is published, waited (another monitor "
    "publishes) or without_layout.",
    "outcome",
)
ROUND_SECONDS = histogram(
    Process.MONITOR, "monitor_round_seconds", "How long a round of questions takes."
)

METRICS = (
    PARTITION_WRITE_SPEED,
    TOPIC_WRITE_SPEED,
    PARTITIONS,
    PARTITIONS_UNKNOWN,
    SAMPLE_AGE,
    PUBLISHING,
    ROUNDS,
    ROUND_SECONDS,
)
