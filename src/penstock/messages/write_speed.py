"""The monitor's measurement of every partition's write speed, for the controller.

One measurement may be split over several messages; `assembly` joins the parts. An unknown value is
absent: a missing speed never reads as zero.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from penstock.messages.fields import (
    PARTITIONS_PER_MESSAGE_MAX,
    PARTS_MAX,
    Count,
    Message,
    Offset,
    Ordinal,
    PartitionRow,
    Quantity,
    TopicId,
    check_parts,
)


class SpeedSource(StrEnum):
    """How a speed was measured."""

    LOG_DIRS = "log_dirs"
    OFFSETS = "offsets"


class PartitionSpeed(PartitionRow):
    """One partition. Planning uses the filtered speed; the raw one is for people and studies."""

    topic_id: TopicId | None = None
    write_speed_bytes_per_s: Quantity | None = None
    write_speed_raw_bytes_per_s: Quantity | None = None
    records_per_s: Quantity | None = None
    mean_log_bytes_per_record: Quantity | None = None
    start_offset: Offset | None = None
    end_offset: Offset | None = None
    source: SpeedSource | None = None


class WriteSpeedMeasurement(Message):
    """Part `part` of `parts` of the measurement `sequence` of one incarnation of a monitor.

    A higher `monitor_incarnation` is newer, then a higher `sequence`. `age_ms` is the age of the
    newest sample at publication.
    """

    topic_role: ClassVar[str] = "monitor"
    header_fields: ClassVar[tuple[str, ...]] = ("monitor_incarnation", "sequence", "part", "parts")

    monitor_incarnation: Ordinal
    sequence: Ordinal
    part: Annotated[int, Field(ge=1, le=PARTS_MAX)] = 1
    parts: Annotated[int, Field(ge=1, le=PARTS_MAX)] = 1
    published_at_unix_ms: Count
    age_ms: Count
    window_ms: Count
    partitions: Annotated[
        tuple[PartitionSpeed, ...], Field(max_length=PARTITIONS_PER_MESSAGE_MAX)
    ] = ()

    @model_validator(mode="after")
    def _parts_are_counted_from_one(self) -> Self:
        check_parts(self)
        return self
