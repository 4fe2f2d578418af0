"""Settings of a consumer: batch sizes, reports and state directory."""

from pydantic import model_validator

from penstock.settings.sections.base import Section, option
from penstock.settings.units import ByteSize, Duration, Speed


class ConsumerSettings(Section):
    """One consumer: the size of its batches, its reports, its state directory."""

    state_root: str = option(
        "state", "Consumer n keeps its state in `consumer-n` below this directory."
    )
    state_wait: Duration = option(
        0.0,
        "How long to wait for a state directory whose holder is about to end; on Kubernetes the "
        "time that a pod may take to end.",
        ge=0,
        le=3600,
    )
    capacity: Speed = option(
        0.0,
        "The highest read speed, in bytes of the broker's log (the monitor's unit); 0 is no limit.",
        ge=0,
    )
    batch_bytes: ByteSize = option(
        256 * 2**20, "The most log bytes that one batch reads.", ge=2**16
    )
    batch_time: Duration = option(
        2.0,
        "The target duration of a batch; its size follows the measured speed. A stop waits for the "
        "running batch. Follows `objective` unless set.",
        gt=0,
        le=300,
    )
    backlog_batch_time: Duration = option(
        4.0,
        "How long a batch may take while there is a backlog. Follows `objective` unless set.",
        gt=0,
        le=600,
    )
    batch_period: Duration = option(
        1.0,
        "The shortest time between the starts of two batches without a backlog. Follows "
        "`objective` unless set.",
        ge=0,
        le=300,
    )
    batch_period_longest: Duration = option(
        5.0,
        "How far that time may grow with the number of consumers that write one table: their "
        "commits are made one after another, and the table's log should be busy for half of the "
        "time at most. 0s: it does not grow. Follows `objective` unless set.",
        ge=0,
        le=300,
    )
    idle_wait: Duration = option(
        0.5,
        "The longest wait before the next look for new records. Follows `objective` unless set.",
        gt=0,
        le=60,
    )
    report_period: Duration = option(
        2.0,
        "How often a consumer reports its state and measurements to the controller; at most half "
        "of `controller.silence`.",
        gt=0,
    )
    grace: Duration = option(
        30.0, "How long a clean shutdown may take, including the running batch.", gt=0, le=3600
    )
    retry_first: Duration = option(
        0.5,
        "The wait before the first retry of a partition, a ledger read or a start of Spark that "
        "failed in a way that may pass; it doubles with every further failure.",
        gt=0,
        le=3600,
    )
    retry_longest: Duration = option(
        15.0,
        "The longest wait before such a retry. What is away for all (Kafka, Spark, the lake) is "
        "asked for again every second or two.",
        gt=0,
        le=3600,
    )
    missing_partition_wait: Duration = option(
        15.0,
        "How long a partition may be unknown to the brokers before it counts as deleted.",
        ge=0,
        le=3600,
    )
    short_log_wait: Duration = option(
        5.0,
        "How long a log may end below what was carried before its partition stops with "
        "`log_truncated`. A new leader may not know for a moment how far its log is committed.",
        gt=0,
        le=3600,
    )
    group_offsets: bool = option(
        True, "Also commit offsets to the Kafka group `lake.group`, for tools that show lag."
    )

    @model_validator(mode="after")
    def _backlog_is_no_shorter(self) -> "ConsumerSettings":
        if self.backlog_batch_time < self.batch_time:
            raise ValueError("backlog_batch_time is shorter than batch_time")
        return self

    @model_validator(mode="after")
    def _longest_retry_is_no_shorter(self) -> "ConsumerSettings":
        if self.retry_longest < self.retry_first:
            raise ValueError("retry_longest is shorter than retry_first")
        return self
