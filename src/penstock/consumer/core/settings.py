"""The settings by which the consumer's core decides, in milliseconds and bytes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """Built by the process from the user's settings; tests and simulations build their own."""

    batch_bytes: int
    batch_time_ms: int
    backlog_batch_time_ms: int
    batch_period_ms: int
    idle_wait_ms: int
    report_period_ms: int
    grace_ms: int
    # 0 means no limit.
    capacity_bytes_per_s: float = 0.0
    # Whether reading goes on after a hole that retention left, or the partition stops.
    skips_holes: bool = False
    # A Connect server can come back; a lost JVM of our own cannot.
    restarts_spark: bool = False
    # 0 disables the upkeep of tables.
    upkeep_period_ms: int = 0
    deployment_version: int | None = None
