"""Everything a consumer's core can ask its process to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.messages import FromConsumer
from penstock.model import Epoch, OffsetRange, TopicPartition


@dataclass(frozen=True, slots=True)
class Effect:
    pass


@dataclass(frozen=True, slots=True)
class WaitUntil(Effect):
    """Give a `Tick` at this time. Replaces the time that was named before."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class SendToController(Effect):
    message: FromConsumer


@dataclass(frozen=True, slots=True)
class ReadLedger(Effect):
    """Answered by `LedgerRead` or `LedgerNotRead` with the same partitions and epochs."""

    partitions: Mapping[TopicPartition, Epoch]


@dataclass(frozen=True, slots=True)
class ReadEnds(Effect):
    """Answered by `EndsRead` or `EndsNotRead`."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ReadLogSizes(Effect):
    """Answered by `LogSizesRead` or `LogSizesNotRead`."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ReadStartOffsets(Effect):
    """Answered by `StartOffsetsRead` or `StartOffsetsNotRead`."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class StartSpark(Effect):
    """Wait, then begin a session. Answered by `SparkStarted` or `SparkNotStarted`."""

    after_ms: int = 0


@dataclass(frozen=True, slots=True)
class RangeToCarry:
    """A range, and the ledger entry from which it was planned; None if there is none yet."""

    range: OffsetRange
    topic_id: str
    ledger_offset: int | None
    epoch: Epoch
    # Of the Kafka leader whose log reached to the range's end, if it named one.
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class CarryBatch(Effect):
    """Answered by `BatchEnded` or `BatchCrashed`."""

    ranges: tuple[RangeToCarry, ...]
    # Little, and nothing is left over: one file for each table, though it takes a little longer.
    is_calm: bool = False


@dataclass(frozen=True, slots=True)
class InterruptBatch(Effect):
    """Make the running batch fail; it is then dropped whole."""


@dataclass(frozen=True, slots=True)
class WriteGroupOffsets(Effect):
    """Tell the Kafka group these offsets, and those that could not be written before."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ForgetGroupOffset(Effect):
    """Another consumer writes the partition: an offset that is still unwritten is void."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class SaveMailboxPositions(Effect):
    """Write how far the mailbox is read into the state directory, if that changed."""


@dataclass(frozen=True, slots=True)
class SetHealth(Effect):
    """What the health answer says is missing; None when nothing is."""

    part: str
    missing: str | None


@dataclass(frozen=True, slots=True)
class KeepTables(Effect):
    """Join small files of these tables. Answered by `TablesKept` or `TablesNotKept`."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveOrphans(Effect):
    """Remove files of earlier incarnations that, as the ledger proves, no commit can name."""


@dataclass(frozen=True, slots=True)
class EndControlled(Effect):
    """Nothing is in flight and every message is out: write "controlled" and exit with 0."""

    within_ms: int


@dataclass(frozen=True, slots=True)
class Fail(Effect):
    """Raise this error: the process ends, and the next incarnation reads the ledger."""

    error: Exception


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Log(Effect):
    """One line of the log."""

    level: LogLevel
    event: str
    fields: Mapping[str, Any]
