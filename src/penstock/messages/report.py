"""A consumer's periodic report: what it owns, how fast it is, and what it waits for or works on.

The controller detects a dead consumer by missing reports. The consumer converts its measurements
to log bytes (bytes on the broker's disk, after compression), the unit of the monitor.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from penstock.messages.events import OwnedPartition, StopReason
from penstock.messages.fields import (
    PARTITIONS_PER_MESSAGE_MAX,
    PARTS_MAX,
    Count,
    FromConsumer,
    Offset,
    Ordinal,
    PartitionRow,
    Quantity,
    Sentence,
    TopicName,
    Value,
    check_parts,
)

# Of so many topics a report tells the capacity.
TOPIC_CAPACITIES_MAX = 100


class ConsumerPhase(StrEnum):
    """The phase of the consumer process."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class PreviousShutdown(StrEnum):
    """How the previous incarnation ended, according to the state directory."""

    NONE = "none"
    CONTROLLED = "controlled"
    UNCONTROLLED = "uncontrolled"
    UNKNOWN = "unknown"


class WaitsFor(StrEnum):
    """What a consumer needs and does not have at the moment."""

    LAKE = "lake"
    SPARK = "spark"
    KAFKA = "kafka"


class WorksOn(StrEnum):
    """What a consumer does that a stop has to wait for."""

    BATCH = "batch"


class Wait(Value):
    """A consumer that waits is alive: its stops and starts are waited for."""

    what: WaitsFor
    since_ms_ago: Count


class Work(Value):
    """A consumer that works is alive: a stop waits for the end of its batch."""

    what: WorksOn
    since_ms_ago: Count


class ReportedPartition(OwnedPartition):
    """An owned partition, with measurements since the last report."""

    end_offset: Offset | None = None
    read_speed_log_bytes_per_s: Quantity | None = None
    records_per_s: Quantity | None = None


class FailedPartition(PartitionRow):
    """A partition that the consumer had to stop, with no command to start it again yet."""

    reason: StopReason
    offset: Offset | None = None
    detail: Sentence = ""


class CycleMeasurement(Value):
    """The batches since the last report: what they carried, and where their time went."""

    batches: Count
    records: Count
    decoded_bytes: Count
    log_bytes: Count
    read_ms: Count
    transform_ms: Count
    write_ms: Count
    commit_ms: Count


class TopicCapacity(Value):
    """What the consumer carries of one topic, shown by batches that held nothing else.

    Full batches show the capacity; others, which only keep up, that it is not lower than this.
    """

    topic: TopicName
    capacity_log_bytes_per_s: Quantity | None = None
    at_least_log_bytes_per_s: Quantity | None = None


class ConsumerReport(FromConsumer):
    """One report. `owned` may be split over several parts; the rest is in every part."""

    report_number: Ordinal
    part: Annotated[int, Field(ge=1, le=PARTS_MAX)] = 1
    parts: Annotated[int, Field(ge=1, le=PARTS_MAX)] = 1
    phase: ConsumerPhase
    previous_shutdown: PreviousShutdown = PreviousShutdown.NONE
    # The consumer's capacity in the monitor's unit; measurable only while it works off a backlog.
    capacity_log_bytes_per_s: Quantity | None = None
    # Since 1.4: shown by batches that were not full, and of each topic alone.
    at_least_log_bytes_per_s: Quantity | None = None
    topic_capacities: Annotated[
        tuple[TopicCapacity, ...], Field(max_length=TOPIC_CAPACITIES_MAX)
    ] = ()
    behind_records: Count | None = None
    behind_log_bytes: Count | None = None
    # The deployment version it was started with; a roll-out waits for the new one.
    deployment_version: Count | None = None
    cycle: CycleMeasurement | None = None
    # The longest of its waits, and its running batch; absent when there is none.
    waits_for: Wait | None = None
    works_on: Work | None = None
    owned: Annotated[
        tuple[ReportedPartition, ...], Field(max_length=PARTITIONS_PER_MESSAGE_MAX)
    ] = ()
    failed: Annotated[tuple[FailedPartition, ...], Field(max_length=100)] = ()

    @model_validator(mode="after")
    def _parts_are_counted_from_one(self) -> Self:
        check_parts(self)
        return self
