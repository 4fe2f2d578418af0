"""A consumer's core driven by hand, and a law of it that a planted bug must break."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from penstock.consumer.core import inputs
from penstock.consumer.core.effects import CarryBatch, Effect, Log, ReadLedger, SendToController
from penstock.consumer.core.inputs import LedgerEntry, PartitionFailure
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.settings import core_settings
from penstock.consumer.core.state_machine import begin, step
from penstock.errors import PenstockError, UnreachableError
from penstock.messages import (
    FromConsumer,
    PartitionToStart,
    PartitionToStop,
    PreviousShutdown,
    StartConsumingCommand,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
    StopReason,
)
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.settings import Settings, changed_settings

ONE = ConsumerId(1)
A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
Kind = TypeVar("Kind", bound=Effect)

# The defaults of production, but for smaller batches, a shorter grace and no upkeep.
USUAL = core_settings(
    changed_settings(
        Settings(),
        {
            "consumer.batch_bytes": 100_000_000,
            "consumer.grace": "10s",
            "lake.compact_period": "0s",
        },
    ),
    deployment_version=None,
)


def passes(text: str = "away", *, is_spark_lost: bool = False) -> PartitionFailure:
    """A failure after which the batch may or may not have been committed."""
    return PartitionFailure(UnreachableError(text), is_spark_lost=is_spark_lost)


def lasts(reason: StopReason, text: str = "broken") -> PartitionFailure:
    return PartitionFailure(PenstockError(text), reason)


class Script:
    """A consumer that is given one input after the other; time passes only in `wait`."""

    def __init__(
        self,
        incarnation: int = 1,
        *,
        previous_shutdown: PreviousShutdown = PreviousShutdown.NONE,
        **settings: Any,
    ) -> None:
        self.now_ms = 0
        self.state, self.effects = begin(
            replace(USUAL, **settings),
            Ownership(ONE, incarnation, previous_shutdown=previous_shutdown),
            now_ms=0,
        )

    @property
    def own(self) -> Ownership:
        return self.state.ownership

    def take(self, given: inputs.Input) -> list[FromConsumer]:
        """The messages; all effects are in `effects`."""
        self.state, self.effects = step(self.state, given)
        return [effect.message for effect in self.did(SendToController)]

    def did(self, kind: type[Kind]) -> list[Kind]:
        """The effects of the last step that are of this kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def logged(self) -> list[str]:
        return [effect.event for effect in self.did(Log)]

    def wait(self, ms: int, **tick: bool) -> list[FromConsumer]:
        """Time passes, and then the core gets a tick."""
        self.now_ms += ms
        return self.take(inputs.Tick(self.now_ms, **tick))

    def wait_until_due(self) -> list[FromConsumer]:
        """To the time that the core named itself."""
        assert self.state.wake_ms is not None
        return self.wait(max(0, self.state.wake_ms - self.now_ms))

    # Commands

    def start(self, *rows: tuple[TopicPartition, str], **head: int) -> list[FromConsumer]:
        return self.read(start_command(*rows, **head))

    def stop(self, *rows: tuple[TopicPartition, str], **head: int) -> list[FromConsumer]:
        return self.read(stop_command(*rows, **head))

    def query(self, number: int = 1, epoch: int = 1, plan: int = 2) -> list[FromConsumer]:
        query = StateQuery(
            consumer_id=1, controller_epoch=epoch, plan_number=plan, query_number=number
        )
        return self.read(query)

    def read(self, *messages: inputs.Command | StateQuery) -> list[FromConsumer]:
        return self.take(inputs.MessagesRead(self.now_ms, messages))

    # What the core asked for

    def ledger(
        self, partition: TopicPartition, epoch: str, offset: int, **entry: Any
    ) -> list[FromConsumer]:
        """The ledger holds this offset; with `ledger_offset=None` it holds none yet."""
        content = {"topic_id": "id", "ledger_offset": offset, "next_offset": offset, **entry}
        found = {partition: LedgerEntry(**content)}
        return self.take(inputs.LedgerRead(self.now_ms, {partition: Epoch.parse(epoch)}, found))

    def ledgers(self, asked: Mapping[TopicPartition, Epoch], offset: int) -> list[FromConsumer]:
        """The ledger holds this offset for each of them."""
        found = {one: LedgerEntry("id", offset, offset) for one in asked}
        return self.take(inputs.LedgerRead(self.now_ms, asked, found))

    def shut_down(self) -> list[FromConsumer]:
        return self.take(inputs.ShutdownAsked(self.now_ms))

    def ledger_lacks(self, partition: TopicPartition, epoch: str) -> list[FromConsumer]:
        return self.take(inputs.LedgerRead(self.now_ms, {partition: Epoch.parse(epoch)}, {}))

    def spark(self) -> list[FromConsumer]:
        return self.take(inputs.SparkStarted(self.now_ms))

    def ends(self, ends: Mapping[TopicPartition, int], **more: Any) -> list[FromConsumer]:
        return self.take(inputs.EndsRead(self.now_ms, ends, **more))

    def sizes(self, bytes_per_offset: Mapping[TopicPartition, float]) -> list[FromConsumer]:
        return self.take(inputs.LogSizesRead(self.now_ms, bytes_per_offset))

    def batch_ends(
        self,
        committed: Mapping[TopicPartition, int] | None = None,
        failures: Mapping[TopicPartition, PartitionFailure] | None = None,
        *,
        refused: Collection[TopicPartition] = (),
        **counts: Any,
    ) -> list[FromConsumer]:
        late = {one: lasts(StopReason.LEDGER_REFUSED) for one in refused}
        return self.take(
            inputs.BatchEnded(self.now_ms, committed or {}, {**(failures or {}), **late}, **counts)
        )

    # Where a story begins

    def owning(self, *partitions: TopicPartition) -> "Script":
        """Start these partitions under epochs 1.1, 1.2 and so on, from offset 10."""
        for number, partition in enumerate(partitions, start=1):
            self.start((partition, f"1.{number}"))
            self.ledger(partition, f"1.{number}", 10)
        return self

    def with_spark(self) -> "Script":
        self.spark()
        return self

    def carrying(self, *partitions: TopicPartition, records: int = 5) -> "Script":
        """With a batch running that carries the next records of these partitions."""
        if not self.state.spark.is_ready:
            self.spark()
        readable = self.own.readable
        self.ends({one: readable[one] + records for one in partitions})
        assert self.did(CarryBatch), "no batch began"
        return self

    def carried(self, partition: TopicPartition) -> tuple[int, int]:
        """The range of this partition in the batch that began in the last step."""
        (batch,) = self.did(CarryBatch)
        (one,) = [one.range for one in batch.ranges if one.range.partition == partition]
        return one.start, one.end


def start_command(*rows: tuple[TopicPartition, str], **head: int) -> StartConsumingCommand:
    partitions = tuple(
        PartitionToStart(topic=p.topic, partition=p.partition, epoch=e) for p, e in rows
    )
    return StartConsumingCommand(**_head(head), partitions=partitions)


def stop_command(*rows: tuple[TopicPartition, str], **head: int) -> StopConsumingCommand:
    partitions = tuple(
        PartitionToStop(topic=p.topic, partition=p.partition, epoch=e) for p, e in rows
    )
    return StopConsumingCommand(**_head(head), partitions=partitions)


def _head(given: dict[str, int]) -> dict[str, int]:
    usual = {"consumer_id": 1, "incarnation": 1, "controller_epoch": 1, "plan_number": 1}
    return {**usual, **given}


def a_query_waits_for_the_commands_before_it() -> None:
    """Neither a start whose ledger is not read nor a stop in a running batch is skipped."""
    script = Script().owning(A).carrying(A)
    script.stop((A, "1.1"), plan_number=2)
    script.start((B, "1.2"), plan_number=2)
    assert script.did(ReadLedger)
    assert script.query() == [], "answered while both commands are pending"
    assert not _responses(script.ledger(B, "1.2", 0)), "answered while a batch is running"
    answers = _responses(script.batch_ends({A: 12}))
    assert [[str(row.topic_partition) for row in a.owned] for a in answers] == [["orders-1"]]


def _responses(messages: list[FromConsumer]) -> list[StateQueryResponse]:
    return [message for message in messages if isinstance(message, StateQueryResponse)]
