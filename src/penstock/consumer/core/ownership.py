"""What one consumer owns, as a value: partitions, their epochs, and the orders it has obeyed.

Every partition carries an epoch; one that has ended here never begins again. `commands` says what
is obeyed and refused, `owned_partitions` how a partition begins, goes on and ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.consumer.core.inputs import Command
from penstock.messages import (
    ConsumerPhase,
    PreviousShutdown,
    StartConsumingCommand,
    StopReason,
)
from penstock.model import ConsumerId, Epoch, TopicPartition


@dataclass(frozen=True)
class Owned:
    """One partition under one epoch. Without a next offset the ledger has not been read yet."""

    epoch: Epoch
    next_offset: int | None = None
    is_in_batch: bool = False
    # Why it ends once the running batch is over; None when it does not.
    ending: StopReason | None = None
    # A start under a higher epoch that came while a batch was running.
    next_epoch: Epoch | None = None

    @property
    def is_unsettled(self) -> bool:
        """Whether a command for it has not taken effect yet."""
        return self.next_offset is None or self.ending is not None or self.next_epoch is not None


@dataclass(frozen=True)
class PendingQuery:
    """A query, and the partitions whose commands came before it and are not done yet."""

    controller_epoch: int
    query_number: int
    waiting_for: frozenset[TopicPartition]


@dataclass(frozen=True)
class Ownership:
    consumer_id: ConsumerId
    incarnation: int
    sequence: int = 0
    reports: int = 0
    controller_epoch: int = 0
    plan_number: int = 0
    previous_shutdown: PreviousShutdown = PreviousShutdown.NONE
    owned: Mapping[TopicPartition, Owned] = field(default_factory=dict)
    # The highest epoch that ended here. Entries of former controllers are dropped: their commands
    # are refused for their controller's epoch already.
    ended: Mapping[TopicPartition, Epoch] = field(default_factory=dict)
    queries: tuple[PendingQuery, ...] = ()
    # How many messages were refused because the leading controller did not write them.
    refused_as_foreign: int = 0
    is_shutting_down: bool = False
    has_ended: bool = False

    @property
    def phase(self) -> ConsumerPhase:
        if self.has_ended:
            return ConsumerPhase.STOPPED
        return ConsumerPhase.STOPPING if self.is_shutting_down else ConsumerPhase.RUNNING

    @property
    def readable(self) -> Mapping[TopicPartition, int]:
        return readable(self.owned)


def readable(owned: Mapping[TopicPartition, Owned]) -> dict[TopicPartition, int]:
    """Partitions a new batch may read, with the offset where it begins."""
    return {
        partition: one.next_offset
        for partition, one in owned.items()
        if one.next_offset is not None and one.ending is None and not one.is_in_batch
    }


def stops_first(commands: Sequence[Command]) -> list[Command]:
    """Commands read together: stops take effect first. Epochs make the order harmless."""
    return sorted(commands, key=lambda command: isinstance(command, StartConsumingCommand))
