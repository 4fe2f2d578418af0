"""Builds the core's settings from the user's."""

from penstock.consumer.core.settings import CoreSettings
from penstock.settings import Settings


def core_settings(settings: Settings, deployment_version: int | None) -> CoreSettings:
    consumer = settings.consumer
    return CoreSettings(
        batch_bytes=consumer.batch_bytes,
        batch_time_ms=_ms(consumer.batch_time),
        backlog_batch_time_ms=_ms(consumer.backlog_batch_time),
        batch_period_ms=_ms(consumer.batch_period),
        idle_wait_ms=_ms(consumer.idle_wait),
        report_period_ms=_ms(consumer.report_period),
        grace_ms=_ms(consumer.grace),
        capacity_bytes_per_s=consumer.capacity,
        skips_holes=settings.lake.on_offset_out_of_range == "skip-and-report",
        restarts_spark=settings.spark.master.startswith("sc://"),
        upkeep_period_ms=_ms(settings.lake.compact_period),
        deployment_version=deployment_version,
    )


def _ms(seconds: float) -> int:
    """At least one millisecond, unless it is zero: a period of none would never pass."""
    return max(1, round(seconds * 1000)) if seconds > 0 else 0
