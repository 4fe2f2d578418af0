"""Scripts that drive a consumer's ownership. Tests use them, and planted bugs must break them."""

from penstock.consumer.core import inputs
from penstock.consumer.core.effects import Effect, ReadLedger, Say
from penstock.consumer.core.ownership import Ownership, step
from penstock.messages import (
    FromConsumer,
    PartitionToStart,
    PartitionToStop,
    StartConsumingCommand,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
)
from penstock.model import ConsumerId, Epoch, TopicPartition

ONE = ConsumerId(1)
A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Script:
    """A consumer's ownership that gets one input after another."""

    def __init__(self, incarnation: int = 1) -> None:
        self.own = Ownership(ONE, incarnation)
        self.effects: tuple[Effect, ...] = ()

    def take(self, given: inputs.Input) -> list[FromConsumer]:
        self.own, self.effects = step(self.own, given)
        return [
            e.message
            for e in self.effects
            if isinstance(e, Say) and isinstance(e.message, FromConsumer)
        ]

    def start(self, *rows: tuple[TopicPartition, str], **head: int) -> list[FromConsumer]:
        partitions = tuple(
            PartitionToStart(topic=p.topic, partition=p.partition, epoch=e) for p, e in rows
        )
        command = StartConsumingCommand(**_head(head), partitions=partitions)
        return self.take(inputs.CommandRead(command))

    def stop(self, *rows: tuple[TopicPartition, str], **head: int) -> list[FromConsumer]:
        partitions = tuple(
            PartitionToStop(topic=p.topic, partition=p.partition, epoch=e) for p, e in rows
        )
        command = StopConsumingCommand(**_head(head), partitions=partitions)
        return self.take(inputs.CommandRead(command))

    def ledger(self, partition: TopicPartition, epoch: str, offset: int) -> list[FromConsumer]:
        return self.take(inputs.LedgerRead(partition, Epoch.parse(epoch), offset))

    def query(self, number: int = 1, epoch: int = 1, plan: int = 2) -> list[FromConsumer]:
        query = StateQuery(
            consumer_id=1, controller_epoch=epoch, plan_number=plan, query_number=number
        )
        return self.take(inputs.QueryRead(query))

    def owning(self, *partitions: TopicPartition) -> "Script":
        """Start these partitions under epochs 1.1, 1.2 and so on, from offset 10."""
        for number, partition in enumerate(partitions, start=1):
            self.start((partition, f"1.{number}"))
            self.ledger(partition, f"1.{number}", 10)
        return self


def _head(given: dict[str, int]) -> dict[str, int]:
    usual = {"consumer_id": 1, "incarnation": 1, "controller_epoch": 1, "plan_number": 1}
    return {**usual, **given}


def a_query_waits_for_the_commands_before_it() -> None:
    """A query waits for the ledger read of a pending start and for the batch of a pending stop."""
    script = Script().owning(A)
    script.take(inputs.BatchBegan([A]))
    script.stop((A, "1.1"), plan_number=2)
    script.start((B, "1.2"), plan_number=2)
    assert any(isinstance(effect, ReadLedger) for effect in script.effects)
    assert script.query() == [], "answered while both commands are pending"
    assert not _responses(script.ledger(B, "1.2", 0)), "answered while a batch is running"
    answers = _responses(script.take(inputs.BatchEnded({A: 12})))
    assert [[str(row.topic_partition) for row in a.owned] for a in answers] == [["orders-1"]]


def _responses(messages: list[FromConsumer]) -> list[StateQueryResponse]:
    return [message for message in messages if isinstance(message, StateQueryResponse)]
