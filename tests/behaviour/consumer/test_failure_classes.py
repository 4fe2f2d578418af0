"""Failures of a batch are classified once, at the border to the core."""

import pytest

from penstock.consumer.core.inputs import PartitionFailure, StageTimes
from penstock.consumer.process.batch_results import away_for_all, batch_ended, waits_for
from penstock.errors import PenstockError, UnreachableError
from penstock.messages import StopReason, WaitsFor
from penstock.model import TopicPartition
from penstock.pipeline import (
    BatchResult,
    LakeAwayError,
    LakeRefusedError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    ReadNotPermittedError,
    SchemaChangedError,
    SparkFailedError,
    SparkMemoryError,
    StaleWriterError,
    TableNotServedError,
    Timings,
    TopicMadeAgainError,
    TopicWithoutIdError,
    TransformationFailedError,
    TransformationMissingError,
)
from penstock.pipeline.failures import KafkaNotReadError, WorkerDiedError, lake_refusal

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StaleWriterError("x"), StopReason.LEDGER_REFUSED),
        (OffsetOutOfRangeError("x"), StopReason.OFFSET_OUT_OF_RANGE),
        (LogTruncatedError("x"), StopReason.LOG_TRUNCATED),
        (TopicMadeAgainError("x"), StopReason.TOPIC_MADE_AGAIN),
        (TransformationFailedError("x"), StopReason.TRANSFORMATION_FAILED),
        (SchemaChangedError("x"), StopReason.SCHEMA_CHANGED),
        (TableNotServedError("x"), StopReason.TABLE_NOT_SERVED),
        (TopicWithoutIdError("x"), StopReason.TOPIC_WITHOUT_ID),
        (ReadNotPermittedError("x"), StopReason.NOT_PERMITTED),
        (TransformationMissingError("x"), StopReason.TRANSFORMATION_FAILED),
    ],
)
def test_what_lasts_has_a_reason(error: PenstockError, reason: StopReason) -> None:
    """The partition that failed has its reason; the other one was committed."""
    ended = batch_ended(BatchResult(carried={B: 9}, failures={A: error}), 7)
    assert ended.failures == {A: PartitionFailure(error, reason)}
    assert ended.committed == {B: 9}
    assert ended.now_ms == 7


@pytest.mark.parametrize(
    "error", [LakeRefusedError("x"), SparkFailedError("x"), UnreachableError("x")]
)
def test_what_passes_has_no_reason(error: PenstockError) -> None:
    """It is tried again; only a failure of Spark says that Spark is lost."""
    (failure,) = batch_ended(BatchResult(failures={A: error}), 0).failures.values()
    assert failure.reason is None
    assert failure.is_spark_lost == isinstance(error, SparkFailedError)


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (UnreachableError("x"), WaitsFor.KAFKA),
        (LakeAwayError("x"), WaitsFor.LAKE),
        (SparkFailedError("x"), WaitsFor.SPARK),
        (LakeRefusedError("x"), None),
        (WorkerDiedError("x"), None),
        (KafkaNotReadError("x"), None),
        (PenstockError("x"), None),
    ],
)
def test_what_is_away_for_all_is_told_from_what_one_partition_lacks(
    error: PenstockError, what: WaitsFor | None
) -> None:
    """A full table, a dead worker and an unknown failure may be of one partition alone."""
    (failure,) = batch_ended(BatchResult(failures={A: error}), 0).failures.values()
    assert failure.shared is what
    assert away_for_all(error, error) is what


def test_two_kinds_of_failures_are_not_one_outage() -> None:
    """And nothing is away when nothing failed."""
    assert away_for_all(UnreachableError("x"), LakeAwayError("x")) is None
    assert away_for_all() is None


@pytest.mark.parametrize(
    ("said", "is_away"),
    [
        (OSError("Generic S3 error\n error sending request\n tcp connect error"), True),
        (OSError("Server returned non-2xx status code: 503 Service Unavailable"), True),
        (OSError(28, "No space left on device"), False),
        (ValueError("error sending request"), False),
        (None, False),
    ],
)
def test_a_lake_that_does_not_answer_is_away_for_all(said: Exception | None, is_away: bool) -> None:
    """A full disk or a broken log may be of one table."""
    assert (lake_refusal(said) is LakeAwayError) == is_away


def test_figures_of_the_batch_come_along() -> None:
    """Records, bytes and times reach the core as they were measured."""
    timings = Timings(read_s=1.0, transform_s=2.0, write_s=3.0, commit_s=4.0)
    ended = batch_ended(BatchResult(records=5, decoded_bytes=600, timings=timings), 0)
    assert (ended.records, ended.decoded_bytes) == (5, 600)
    assert ended.times == StageTimes(1.0, 2.0, 3.0, 4.0)


def test_a_ledger_that_is_not_read_waits_for_the_lake_or_for_kafka() -> None:
    """The pipeline's errors are the lake's; every other is Kafka's."""
    assert waits_for(LakeRefusedError("x")) is WaitsFor.LAKE
    assert waits_for(UnreachableError("x")) is WaitsFor.KAFKA
    assert waits_for(UnreachableError("x"), LakeRefusedError("x")) is WaitsFor.LAKE


def test_a_batch_that_is_too_large_for_spark_does_not_lose_it() -> None:
    """Spark lives, and the next batch is smaller."""
    error = SparkMemoryError("heap space")
    (failure,) = batch_ended(BatchResult(failures={A: error}), 0).failures.values()
    assert failure == PartitionFailure(error, is_out_of_memory=True)
