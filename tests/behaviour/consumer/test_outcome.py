"""What a batch's result means for each partition."""

import pytest

from penstock.consumer.process.outcome import outcome_of
from penstock.errors import PenstockError, UnreachableError
from penstock.messages import StopReason
from penstock.model import TopicPartition
from penstock.pipeline import (
    BatchResult,
    LakeRefusedError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    SchemaChangedError,
    SparkFailedError,
    StaleWriterError,
    TopicMadeAgainError,
    TransformationFailedError,
)

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OffsetOutOfRangeError("x"), StopReason.OFFSET_OUT_OF_RANGE),
        (LogTruncatedError("x"), StopReason.LOG_TRUNCATED),
        (TopicMadeAgainError("x"), StopReason.TOPIC_MADE_AGAIN),
        (TransformationFailedError("x"), StopReason.TRANSFORMATION_FAILED),
        (SchemaChangedError("x"), StopReason.TRANSFORMATION_FAILED),
    ],
)
def test_what_lasts_stops_its_partition_alone(error: PenstockError, reason: StopReason) -> None:
    """The other one was carried."""
    outcome = outcome_of(BatchResult(carried={B: 9}, failures={A: error}), skips_holes=False)
    assert outcome.stopped == {A: (reason, error)}
    assert outcome.committed == {B: 9}
    assert not outcome.put_off


@pytest.mark.parametrize(
    "error", [LakeRefusedError("x"), SparkFailedError("x"), UnreachableError("x")]
)
def test_what_passes_is_put_off(error: PenstockError) -> None:
    """Tried again; a failure of Spark asks for a new session."""
    outcome = outcome_of(BatchResult(failures={A: error}), skips_holes=False)
    assert outcome.put_off == {A: error}
    assert not outcome.stopped
    assert outcome.spark_failed == isinstance(error, SparkFailedError)


def test_who_lost_the_ledger_is_refused() -> None:
    """It is somebody else's partition."""
    outcome = outcome_of(BatchResult(failures={A: StaleWriterError("x")}), skips_holes=True)
    assert set(outcome.refused) == {A}


def test_a_hole_is_gone_over_only_when_chosen() -> None:
    """Never silently, and never by default."""
    result = BatchResult(failures={A: OffsetOutOfRangeError("x")})
    assert set(outcome_of(result, skips_holes=True).out_of_range) == {A}
    assert not outcome_of(result, skips_holes=True).stopped
    assert set(outcome_of(result, skips_holes=False).stopped) == {A}
