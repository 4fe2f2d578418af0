"""Carries offset ranges from Kafka into Delta tables, exactly once.

The only package that imports pyspark or deltalake. A consumer reads `Pipeline.next_offsets`, plans
ranges and hands them to `Pipeline.carry`. Who owns a partition is decided elsewhere.

What needs Spark is imported when it is first asked for: a child process that keeps tables in shape
does not, and Spark's client takes half a second of a core to import.
"""

import importlib
from typing import TYPE_CHECKING, Any

from penstock.pipeline.batch import BatchResult, Claim, PlannedRange, Timings, Writer
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

if TYPE_CHECKING:
    from penstock.pipeline.carry import Pipeline
    from penstock.pipeline.session import start_session

_OF_SPARK = {"Pipeline": "carry", "start_session": "session"}

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


def __getattr__(name: str) -> Any:
    if name not in _OF_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_OF_SPARK[name]}"), name)
