"""What a batch's result means for each of its partitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from penstock.messages import StopReason
from penstock.model import TopicPartition
from penstock.pipeline import (
    BatchResult,
    LogTruncatedError,
    OffsetOutOfRangeError,
    PipelineError,
    SchemaChangedError,
    SparkFailedError,
    StaleWriterError,
    TopicMadeAgainError,
    TransformationFailedError,
)

_REASONS: tuple[tuple[type[PenstockError], StopReason], ...] = (
    (OffsetOutOfRangeError, StopReason.OFFSET_OUT_OF_RANGE),
    (LogTruncatedError, StopReason.LOG_TRUNCATED),
    (TopicMadeAgainError, StopReason.TOPIC_MADE_AGAIN),
    (TransformationFailedError, StopReason.TRANSFORMATION_FAILED),
    (SchemaChangedError, StopReason.TRANSFORMATION_FAILED),
)


@dataclass(slots=True)
class BatchOutcome:
    """`stopped` cannot be read on; `put_off` failed in a way that passes; the rest is as named."""

    committed: Mapping[TopicPartition, int]
    refused: dict[TopicPartition, PenstockError] = field(default_factory=dict)
    stopped: dict[TopicPartition, tuple[StopReason, PenstockError]] = field(default_factory=dict)
    out_of_range: dict[TopicPartition, PenstockError] = field(default_factory=dict)
    put_off: dict[TopicPartition, PenstockError] = field(default_factory=dict)

    @property
    def spark_failed(self) -> bool:
        return any(isinstance(error, SparkFailedError) for error in self.put_off.values())


def outcome_of(result: BatchResult, *, skips_holes: bool) -> BatchOutcome:
    """Sort the failures. One that has no reason of its own and lasts is the transformation's."""
    outcome = BatchOutcome(committed=dict(result.carried))
    for partition, error in sorted(result.failures.items(), key=lambda item: item[0]):
        if isinstance(error, StaleWriterError):
            outcome.refused[partition] = error
        elif isinstance(error, OffsetOutOfRangeError) and skips_holes:
            outcome.out_of_range[partition] = error
        elif isinstance(error, PipelineError) and error.is_lasting:
            outcome.stopped[partition] = (stop_reason(error), error)
        else:
            outcome.put_off[partition] = error
    return outcome


def stop_reason(error: PenstockError) -> StopReason:
    return next(
        (reason for kind, reason in _REASONS if isinstance(error, kind)),
        StopReason.TRANSFORMATION_FAILED,
    )
