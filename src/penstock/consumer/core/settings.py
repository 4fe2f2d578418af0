"""The settings by which the consumer's core decides, in milliseconds and bytes.

`core_settings` is the only builder: the consumer, the simulations and the tests use it, and every
default comes from the settings catalogue.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.settings.sections import LakeSettings, Settings


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """The options as the core uses them; docs/options.md has each."""

    batch_bytes: int
    batch_time_ms: int
    backlog_batch_time_ms: int
    batch_period_ms: int
    batch_period_longest_ms: int
    idle_wait_ms: int
    report_period_ms: int
    grace_ms: int
    retry_first_ms: int
    retry_longest_ms: int
    missing_partition_wait_ms: int
    short_log_wait_ms: int
    # 0 means no limit.
    capacity_bytes_per_s: float
    # Whether batches of one topic alone show what it costs: only where capacities are measured.
    measures_topics: bool
    # Whether reading goes on after a hole that retention left, or the partition stops.
    skips_holes: bool
    # A Connect server can come back; a lost JVM of our own cannot.
    restarts_spark: bool
    local_spark_failures_max: int
    # 0 disables the upkeep of tables.
    upkeep_period_ms: int
    upkeep_share: float
    # For tables that the settings name: the topic whose partition 0 decides who keeps them.
    table_keepers: Mapping[str, str]
    deployment_version: int | None


def core_settings(settings: Settings, deployment_version: int | None) -> CoreSettings:
    consumer = settings.consumer
    return CoreSettings(
        batch_bytes=consumer.batch_bytes,
        batch_time_ms=_ms(consumer.batch_time),
        backlog_batch_time_ms=_ms(consumer.backlog_batch_time),
        batch_period_ms=_ms(consumer.batch_period),
        batch_period_longest_ms=_ms(consumer.batch_period_longest),
        idle_wait_ms=_ms(consumer.idle_wait),
        report_period_ms=_ms(consumer.report_period),
        grace_ms=_ms(consumer.grace),
        retry_first_ms=_ms(consumer.retry_first),
        retry_longest_ms=_ms(consumer.retry_longest),
        missing_partition_wait_ms=_ms(consumer.missing_partition_wait),
        short_log_wait_ms=_ms(consumer.short_log_wait),
        capacity_bytes_per_s=consumer.capacity,
        measures_topics=settings.packing.is_capacity_measured,
        skips_holes=settings.lake.on_offset_out_of_range == "skip-and-report",
        restarts_spark=settings.spark.uses_connect_server,
        local_spark_failures_max=settings.spark.local_failures_max,
        upkeep_period_ms=_ms(settings.lake.compact_period),
        upkeep_share=settings.lake.compact_share,
        table_keepers=table_keepers(settings.lake),
        deployment_version=deployment_version,
    )


def table_keepers(lake: LakeSettings) -> dict[str, str]:
    """The first topic, by name, of each table that the settings name.

    Dead letters are kept with the first topic that has a transformation. A topic whose table has
    another name has no table of its own name, unless another topic goes there: nobody keeps it.
    """
    keepers = dict.fromkeys(lake.tables, "")
    for topic in sorted(lake.tables, reverse=True):
        keepers[lake.table_of(topic).table] = topic
    transformed = [topic for topic, own in lake.tables.items() if own.transformation]
    if transformed:
        keepers[lake.dead_letter_table] = min(transformed)
    return keepers


def _ms(seconds: float) -> int:
    """At least one millisecond, unless it is zero: a period of none would never pass."""
    return max(1, round(seconds * 1000)) if seconds > 0 else 0
