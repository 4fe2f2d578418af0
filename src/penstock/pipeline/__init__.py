"""Carries offset ranges from Kafka into Delta tables, exactly once.

The only package that imports pyspark or deltalake. A consumer reads `Pipeline.next_offsets`, plans
ranges and hands them to `Pipeline.carry`. Who owns a partition is decided elsewhere.
"""

from penstock.pipeline.batch import BatchResult, Claim, PlannedRange, Timings, Writer
from penstock.pipeline.carry import Pipeline
from penstock.pipeline.failures import (
    LakeAwayError,
    LakeRefusedError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    PipelineError,
    ReadNotPermittedError,
    RecordUnreadableError,
    SchemaChangedError,
    SparkFailedError,
    SparkMemoryError,
    StaleWriterError,
    TableNotServedError,
    TopicGoneError,
    TopicMadeAgainError,
    TopicWithoutIdError,
    TransformationFailedError,
    TransformationMissingError,
    UnforeseenError,
)
from penstock.pipeline.session import start_session

__all__ = [
    "BatchResult",
    "Claim",
    "LakeAwayError",
    "LakeRefusedError",
    "LogTruncatedError",
    "OffsetOutOfRangeError",
    "Pipeline",
    "PipelineError",
    "PlannedRange",
    "ReadNotPermittedError",
    "RecordUnreadableError",
    "SchemaChangedError",
    "SparkFailedError",
    "SparkMemoryError",
    "StaleWriterError",
    "TableNotServedError",
    "Timings",
    "TopicGoneError",
    "TopicMadeAgainError",
    "TopicWithoutIdError",
    "TransformationFailedError",
    "TransformationMissingError",
    "UnforeseenError",
    "Writer",
    "start_session",
]
