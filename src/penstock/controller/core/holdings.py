"""What consumers say about partitions, entered into the books.

Three things end a holding: its reader says it stopped, its reader's report does not name any more
what it named before, or its reader is fenced. Messages are in order here (the door saw to it), so
the newest word of a consumer about itself is the truth about it.
"""

from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.membership import begin_leaving, fence, make_ready, remove
from penstock.controller.core.state import ConsumerStatus, Holding, HoldingStatus, Parked
from penstock.controller.core.step_draft import Turn
from penstock.messages import (
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    FromConsumer,
    RefusalReason,
    StartConsumingEvent,
    StopConsumingEvent,
    StopReason,
)
from penstock.model import ConsumerId, Epoch, TopicPartition

# Reading again at once would fail again: these wait for their time, or for a person.
FAILURES = frozenset(StopReason) - {
    StopReason.COMMANDED,
    StopReason.SHUTDOWN,
    StopReason.LEDGER_REFUSED,
}


def _is_of(holding: Holding | None, consumer: ConsumerId, epoch: Epoch) -> bool:
    return holding is not None and holding.consumer == consumer and holding.epoch == epoch


def _reads(turn: Turn, consumer: ConsumerId, partition: TopicPartition, epoch: Epoch) -> None:
    """The consumer says that it reads the partition under this epoch."""
    holding = turn.holdings.get(partition)
    if not was_given_out(turn, epoch):
        # A lie, or a mistake: nothing is done on its word.
        turn.count("impossible_claim")
        return
    if holding is not None and _is_of(holding, consumer, epoch):
        if holding.status is HoldingStatus.STARTING:
            owned = HoldingStatus.OWNED
            holding = replace(holding, status=owned, since_ms=turn.now_ms, is_acknowledged=True)
            turn.hold(partition, holding)
        elif not holding.is_acknowledged:
            turn.hold(partition, replace(holding, is_acknowledged=True))
    elif holding is None and partition in turn.state.partitions:
        # Nobody else has it: it may keep it. A list that was out of date hid this consumer from us.
        turn.count("reader_adopted")
        turn.hold(partition, acknowledged(turn, consumer, epoch))
        turn.save()
    elif holding is None or holding.consumer != consumer:
        # It reads what it should not: stop it. The epoch fences it off in any case.
        turn.count("stray_reader")
        turn.decide(
            Code.STRAY_READER, f"consumer {consumer} reads {partition} and should not: stopped"
        )
        turn.send_stop(consumer, turn.consumers[consumer].incarnation, partition, epoch)


def was_given_out(turn: Turn, epoch: Epoch) -> bool:
    """Whether this or a former controller can have started anything under the epoch."""
    return epoch <= Epoch(turn.state.controller_epoch, turn.epochs_used)


def acknowledged(turn: Turn, consumer: ConsumerId, epoch: Epoch) -> Holding:
    """What a consumer says it reads, as the books have it."""
    return Holding(
        consumer,
        turn.consumers[consumer].incarnation,
        epoch,
        HoldingStatus.OWNED,
        turn.now_ms,
        turn.now_ms,
        is_acknowledged=True,
    )


def started(turn: Turn, message: StartConsumingEvent) -> set[TopicPartition]:
    touched = set()
    for row in message.partitions:
        _reads(turn, message.sender, row.topic_partition, row.partition_epoch)
        touched.add(row.topic_partition)
    return touched


def stopped(turn: Turn, message: StopConsumingEvent) -> set[TopicPartition]:
    touched = set()
    for row in message.partitions:
        partition = row.topic_partition
        if not _is_of(turn.holdings.get(partition), message.sender, row.partition_epoch):
            turn.count("stop_of_another_epoch")
            continue
        turn.release(partition)
        touched.add(partition)
        if row.reason in FAILURES:
            until_ms = turn.now_ms + turn.state.settings.retry_failed_ms
            turn.parked.put(partition, Parked(until_ms, row.reason.value))
            turn.decide(
                Code.PARTITION_FAILED,
                f"{partition} cannot be read: {row.reason.value}; tried again later",
            )
            turn.save()
        elif row.reason is StopReason.LEDGER_REFUSED:
            turn.decide(
                Code.PARTITION_GIVEN_UP,
                f"consumer {message.sender} gave {partition} up: the ledger refused its commit",
            )
    return touched


def reported(turn: Turn, message: ConsumerReport) -> set[TopicPartition]:
    """A report is also an acknowledgement: of starts it names and of stops it does not."""
    consumer = message.sender
    record = turn.consumers[consumer]
    turn.consumers.put(
        consumer,
        replace(
            record,
            capacity_bytes_per_s=message.capacity_log_bytes_per_s or record.capacity_bytes_per_s,
            behind_bytes=message.behind_log_bytes or 0,
            behind_records=message.behind_records or 0,
            deployment_version=(
                record.deployment_version
                if message.deployment_version is None
                else message.deployment_version
            ),
        ),
    )
    if message.phase is ConsumerPhase.RUNNING and record.status in {
        ConsumerStatus.WANTED,
        ConsumerStatus.CREATING,
        ConsumerStatus.QUERIED,
    }:
        make_ready(turn, consumer)
    touched = {row.topic_partition for row in message.owned}
    for row in message.owned:
        _reads(turn, consumer, row.topic_partition, row.partition_epoch)
    for partition in sorted(turn.held_by(consumer) - touched):
        if turn.holdings[partition].is_acknowledged:
            turn.release(partition)
            touched.add(partition)
    if message.phase is ConsumerPhase.STOPPING:
        begin_leaving(turn, consumer)
    elif message.phase is ConsumerPhase.STOPPED:
        _says_goodbye(turn, consumer)
    return touched


def _says_goodbye(turn: Turn, consumer: ConsumerId) -> None:
    """Its last word: what it was still told to start, it will not."""
    if turn.held_by(consumer):
        fence(turn, consumer, "has ended")
    else:
        remove(turn, consumer, "it has ended")


def refused(turn: Turn, message: CommandRefusedEvent) -> bool:
    """A consumer does not obey. True when that means that we are out of step with it."""
    turn.count("command_refused")
    if message.reason is RefusalReason.SHUTTING_DOWN:
        begin_leaving(turn, message.sender)
        return False
    if message.reason not in {RefusalReason.STALE_PLAN, RefusalReason.STALE_PARTITION_EPOCH}:
        return False
    if message.refused_controller_epoch != turn.state.controller_epoch:
        return False
    if message.refused_plan_number != turn.state.plan_number:
        return False
    return any(
        holding is not None
        and holding.status is HoldingStatus.STARTING
        and _is_of(holding, message.sender, row.partition_epoch)
        for row in message.partitions
        for holding in (turn.holdings.get(row.topic_partition),)
    )


def heard(turn: Turn, message: FromConsumer) -> tuple[set[TopicPartition], bool]:
    """Enter any message into the books: what it touched, and whether we are out of step.

    Responses to queries are ignored outside of synchronisation, as the notes say.
    """
    if isinstance(message, ConsumerReport):
        return reported(turn, message), False
    if isinstance(message, StartConsumingEvent):
        return started(turn, message), False
    if isinstance(message, StopConsumingEvent):
        return stopped(turn, message), False
    if isinstance(message, CommandRefusedEvent):
        return set(), refused(turn, message)
    turn.count("response_ignored")
    return set(), False
