"""What can go wrong between Kafka and the lake, as types a consumer can act on.

`is_lasting` says that the same range would fail again: the partition is stopped and reported, the
others go on. What is not lasting (Kafka or the lake away for a while) is tried again.
"""

from typing import ClassVar

from penstock.errors import PenstockError, SettingsError


class PipelineError(PenstockError):
    """A range was not carried."""

    is_lasting: ClassVar[bool] = True


class StaleWriterError(PipelineError):
    """The ledger no longer stands where this batch began: somebody else carries the partition."""


class OffsetOutOfRangeError(PipelineError):
    """Retention removed records before they were carried."""


class LogTruncatedError(PipelineError):
    """The log ends before the range does: the broker lost records it once had."""


class TopicMadeAgainError(PipelineError):
    """The topic with this name is not the one the range was planned for."""


class TransformationFailedError(PipelineError):
    """The user's function raised, or gave something that no table can take."""


class SchemaChangedError(PipelineError):
    """The records no longer fit the table's columns."""


class LakeRefusedError(PipelineError):
    """The lake takes no writes: full, read-only or not permitted."""

    is_lasting = False


class SparkFailedError(PipelineError):
    """Spark itself failed or is not there."""

    is_lasting = False


class TransformationMissingError(SettingsError):
    """The settings name a function that cannot be had."""
