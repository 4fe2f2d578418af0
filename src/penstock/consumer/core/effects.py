"""Everything a consumer's ownership can ask its process to do."""

from dataclasses import dataclass

from penstock.messages import Message
from penstock.model import Epoch, TopicPartition


@dataclass(frozen=True, slots=True)
class Effect:
    pass


@dataclass(frozen=True, slots=True)
class Say(Effect):
    """Put a message into the controller's mailbox."""

    message: Message


@dataclass(frozen=True, slots=True)
class ReadLedger(Effect):
    """Read where the partition stands; answered by `LedgerRead` with the same epoch."""

    partition: TopicPartition
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class EndControlled(Effect):
    """Nothing is in flight and all is said: write "controlled", and exit with 0."""
