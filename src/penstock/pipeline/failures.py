"""What can go wrong between Kafka and the lake, as types that a consumer can act on.

`is_lasting` means that the same range would fail again: the partition is stopped and reported, and
the others go on. A failure that does not last (Kafka, Spark or the lake is away) is tried again.
"""

import re
from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import PenstockError, SettingsError
from penstock.model import TopicPartition

# These pass through a batch: a person or the runtime ends what runs. Everything else that is raised
# in one is a failure of the tables concerned: also what native code raises when it panics, which
# is no Exception, and a library or a transformation that calls `sys.exit`.
ENDS_THE_PROCESS = (KeyboardInterrupt, GeneratorExit)
# By an object store that does not answer, and by the mount of a file server that is gone.
_LAKE_IS_AWAY = re.compile(
    r"error sending request|tcp connect error|operation timed out|status code: 5\d\d|"
    r"Stale file handle|Transport endpoint is not connected|Host is down|No route to host"
)


class PipelineError(PenstockError):
    """A range was not carried."""

    is_lasting: ClassVar[bool] = True


class StaleWriterError(PipelineError):
    """The ledger has moved since this batch was planned: another writer carries the partition."""


class OffsetOutOfRangeError(PipelineError):
    """Retention removed records before they were carried."""


class LogTruncatedError(PipelineError):
    """The log ends before the range does: the broker lost records it once had."""


class TopicMadeAgainError(PipelineError):
    """The topic was made again since the range was planned."""


class TopicGoneError(PipelineError):
    """Kafka does not have the topic now. Later looks show whether it was deleted or made again."""

    is_lasting = False


class TopicWithoutIdError(PipelineError):
    """The broker gives the topic no id, so the ledger could not tell it from its namesakes."""


class ReadNotPermittedError(PipelineError):
    """The principal may describe the topic, but not read it."""


class TransformationFailedError(PipelineError):
    """The transformation raised, or returned something that no table can take."""


class SchemaChangedError(PipelineError):
    """The records no longer fit the table's columns."""


class TableNotServedError(PipelineError):
    """The table has a rule that our files would break."""


class PartitionsUnreadableError(PipelineError):
    """Spark's workers cannot read these partitions. The connector may; the others are fine."""

    is_lasting = False

    def __init__(self, reasons: Mapping[TopicPartition, str]) -> None:
        first = min(reasons)
        others = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        super().__init__(f"Spark's workers cannot read {first}{others}: {reasons[first]}")
        self.partitions = frozenset(reasons)


class RecordUnreadableError(PipelineError):
    """Kafka has a record of the range, and neither of its clients can read it."""

    is_lasting = False


class UnforeseenError(PipelineError):
    """Something failed in a batch that nobody expected. It concerns the batch's table alone."""

    is_lasting = False


class LakeRefusedError(PipelineError):
    """The lake takes no writes: full, read-only or not permitted."""

    is_lasting = False


class LakeAwayError(LakeRefusedError):
    """The lake's storage does not answer; no table can be read or written."""


class SparkFailedError(PipelineError):
    """Spark failed or cannot be reached."""

    is_lasting = False


class KafkaNotReadError(SparkFailedError):
    """Spark got no record from Kafka in time."""


class SparkMemoryError(SparkFailedError):
    """Spark ran out of memory, and lives: the batch is too large for it."""


class WorkerDiedError(SparkFailedError):
    """A Python worker of Spark died: of a record that its libraries cannot take, or of memory."""


class TransformationMissingError(SettingsError):
    """The settings name a transformation that cannot be imported."""


def lake_refusal(error: BaseException | None) -> type[LakeRefusedError]:
    """Whether the whole lake is away, by what its library says; else it may be one table."""
    is_away = isinstance(error, OSError) and _LAKE_IS_AWAY.search(str(error)) is not None
    return LakeAwayError if is_away else LakeRefusedError
