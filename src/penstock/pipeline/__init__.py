"""Spark: offset ranges -> the user's transformation -> Parquet -> one Delta commit, exactly once.

The only room that imports pyspark or deltalake. A consumer plans ranges, hands them to
`Pipeline.carry` and reads `Pipeline.next_offsets`; what happens to ownership is not decided here.
"""

from penstock.pipeline.batch import BatchResult, Claim, PlannedRange, Timings, Writer
from penstock.pipeline.carry import Pipeline
from penstock.pipeline.failures import (
    LakeRefusedError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    PipelineError,
    SchemaChangedError,
    SparkFailedError,
    StaleWriterError,
    TopicMadeAgainError,
    TransformationFailedError,
)
from penstock.pipeline.session import start_session

__all__ = [
    "BatchResult",
    "Claim",
    "LakeRefusedError",
    "LogTruncatedError",
    "OffsetOutOfRangeError",
    "Pipeline",
    "PipelineError",
    "PlannedRange",
    "SchemaChangedError",
    "SparkFailedError",
    "StaleWriterError",
    "Timings",
    "TopicMadeAgainError",
    "TransformationFailedError",
    "Writer",
    "start_session",
]
