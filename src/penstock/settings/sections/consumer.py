"""How one consumer works: how much at once, how often it reports, where it remembers its end."""

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
        "How long to wait for a state directory whose holder is about to end; on Kubernetes as "
        "long as a pod may take to end.",
        ge=0,
        le=3600,
    )
    capacity: Speed = option(
        0.0,
        "The most it reads, in bytes of the broker's log (the monitor's unit); 0 for no limit.",
        ge=0,
    )
    batch_bytes: ByteSize = option(
        256 * 2**20, "The most bytes of the log that one batch reads.", ge=2**16
    )
    batch_time: Duration = option(
        2.0,
        "How long a batch should take; its size follows the measured speed. A stop waits for no "
        "more than the batch that runs.",
        gt=0,
        le=300,
    )
    backlog_batch_time: Duration = option(
        4.0, "How long a batch may take while there is a backlog.", gt=0, le=600
    )
    batch_period: Duration = option(
        1.0, "Without a backlog, batches begin no closer together than this.", ge=0, le=300
    )
    idle_wait: Duration = option(
        0.5, "How long to wait at most before looking for new records again.", gt=0, le=60
    )
    report_period: Duration = option(
        2.0, "How often it tells the controller that it is alive, and what it measured.", gt=0
    )
    grace: Duration = option(
        30.0, "How long an orderly end may take, the running batch included.", gt=0, le=3600
    )
    group_offsets: bool = option(
        True, "Whether offsets also go to the Kafka group `lake.group`, for tools that show lag."
    )

    @model_validator(mode="after")
    def _backlog_is_no_shorter(self) -> "ConsumerSettings":
        if self.backlog_batch_time < self.batch_time:
            raise ValueError("backlog_batch_time is shorter than batch_time")
        return self
