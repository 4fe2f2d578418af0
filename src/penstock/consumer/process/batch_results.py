"""Translates what was answered into the core's terms. Failures are classified here, once."""

from penstock.consumer.core.inputs import BatchEnded, PartitionFailure, StageTimes
from penstock.errors import PenstockError, UnreachableError
from penstock.messages import StopReason, WaitsFor
from penstock.pipeline import (
    BatchResult,
    LakeAwayError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    PipelineError,
    ReadNotPermittedError,
    SchemaChangedError,
    SparkFailedError,
    SparkMemoryError,
    StaleWriterError,
    TableNotServedError,
    TopicMadeAgainError,
    TopicWithoutIdError,
    TransformationMissingError,
)

_REASONS: tuple[tuple[type[PenstockError], StopReason], ...] = (
    (StaleWriterError, StopReason.LEDGER_REFUSED),
    (OffsetOutOfRangeError, StopReason.OFFSET_OUT_OF_RANGE),
    (LogTruncatedError, StopReason.LOG_TRUNCATED),
    (TopicMadeAgainError, StopReason.TOPIC_MADE_AGAIN),
    (ReadNotPermittedError, StopReason.NOT_PERMITTED),
    (SchemaChangedError, StopReason.SCHEMA_CHANGED),
    (TableNotServedError, StopReason.TABLE_NOT_SERVED),
    (TopicWithoutIdError, StopReason.TOPIC_WITHOUT_ID),
)


def batch_ended(result: BatchResult, now_ms: int) -> BatchEnded:
    times = result.timings
    return BatchEnded(
        now_ms,
        committed=dict(result.carried),
        failures={
            one: PartitionFailure(
                error,
                stop_reason(error),
                is_spark_lost=isinstance(error, SparkFailedError)
                and not isinstance(error, SparkMemoryError),
                is_out_of_memory=isinstance(error, SparkMemoryError),
                shared=away_for_all(error),
            )
            for one, error in result.failures.items()
        },
        records=result.records,
        decoded_bytes=result.decoded_bytes,
        commit_round_s=result.commit_round_s,
        times=StageTimes(times.read_s, times.transform_s, times.write_s, times.commit_s),
    )


def stop_reason(error: PenstockError) -> StopReason | None:
    """None for what passes. What lasts and has no reason of its own is the transformation's."""
    if isinstance(error, TransformationMissingError):
        return StopReason.TRANSFORMATION_FAILED
    if not (isinstance(error, PipelineError) and error.is_lasting):
        return None
    return next(
        (reason for kind, reason in _REASONS if isinstance(error, kind)),
        StopReason.TRANSFORMATION_FAILED,
    )


def away_for_all(*errors: Exception) -> WaitsFor | None:
    """What every partition lacks; None if a failure may be of one partition or table alone.

    A worker that died, or that does not reach Kafka, may have met its own records.
    """
    found = {_away(error) for error in errors}
    return found.pop() if len(found) == 1 else None


def _away(error: Exception) -> WaitsFor | None:
    if isinstance(error, UnreachableError):
        return WaitsFor.KAFKA
    if isinstance(error, LakeAwayError):
        return WaitsFor.LAKE
    return WaitsFor.SPARK if type(error) is SparkFailedError else None


def waits_for(*errors: Exception) -> WaitsFor:
    """What ledger entries that could not be read wait for: what is not the lake's is Kafka's."""
    is_lake = any(isinstance(error, PipelineError) for error in errors)
    return WaitsFor.LAKE if is_lake else WaitsFor.KAFKA
