"""Which consumer holds which partition, updated from what consumers report.

A holding ends in three ways: its consumer confirms the stop, its consumer's report no longer names
the partition, or its consumer is fenced. Messages are checked for order before they come here, so
a consumer's newest message about itself is right.
"""

from dataclasses import replace

from penstock.controller.core.backlog import backlog_of, next_offsets_of, unread_records_of
from penstock.controller.core.capacity_learning import is_slowed, learn
from penstock.controller.core.decisions import Code
from penstock.controller.core.heartbeats import explained, note_carried_records
from penstock.controller.core.membership import begin_leaving, fence, make_ready, remove
from penstock.controller.core.roll_out_signs import note_failure, proven_topics
from penstock.controller.core.state import (
    ConsumerRecord,
    ConsumerStatus,
    Holding,
    HoldingStatus,
    Parked,
)
from penstock.controller.core.step_draft import StepDraft
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
from penstock.model.changed import changed
from penstock.model.sentences import counted, duration_text

# Starting these again at once would fail again: they wait for `failed_partition_retry`. A topic
# that was made again is not among them: its new ledger entry has nothing wrong with it. A deleted
# one is: it waits until the monitor misses it too, or sees it again under another id.
FAILURES = frozenset(StopReason) - {
    StopReason.COMMANDED,
    StopReason.SHUTDOWN,
    StopReason.LEDGER_REFUSED,
    StopReason.TOPIC_MADE_AGAIN,
}


def _is_of(holding: Holding | None, consumer: ConsumerId, epoch: Epoch) -> bool:
    return holding is not None and holding.consumer == consumer and holding.epoch == epoch


def _reads(draft: StepDraft, consumer: ConsumerId, partition: TopicPartition, epoch: Epoch) -> None:
    """The consumer says that it reads the partition under this epoch."""
    holding = draft.holdings.get(partition)
    former = draft.before.holdings.get(partition)
    was_taken_since = holding is None and former is not None and epoch < former.epoch
    if was_taken_since or not was_given_out(draft, epoch):
        # A forged or corrupt message: ignored. What an incarnation had before it ended in this
        # step, nobody reads under an older epoch.
        draft.count("impossible_claim")
        return
    if holding is not None and _is_of(holding, consumer, epoch):
        if holding.status is HoldingStatus.STARTING:
            owned = HoldingStatus.OWNED
            draft.hold(
                partition, replace(holding, status=owned, is_acknowledged=True, is_overdue=False)
            )
        elif not holding.is_acknowledged:
            draft.hold(partition, replace(holding, is_acknowledged=True))
    elif holding is None and partition in draft.state.write_speeds:
        # No other consumer has it, so it may keep it. A stale list had hidden this consumer.
        draft.count("reader_adopted")
        draft.hold(partition, acknowledged(draft, consumer, epoch))
        draft.save()
    elif holding is None or holding.consumer != consumer:
        # It reads a partition of another consumer: stop it. Its epoch is fenced in any case.
        draft.count("stray_reader")
        draft.decide(
            Code.STRAY_READER,
            f"consumer {consumer} reads {partition} without being assigned to it: stopped",
        )
        draft.send_stop(consumer, draft.consumers[consumer].incarnation, partition, epoch)


def was_given_out(draft: StepDraft, epoch: Epoch) -> bool:
    """Whether this or a former controller can have started anything under the epoch."""
    return epoch <= Epoch(draft.state.controller_epoch, draft.epochs_used)


def acknowledged(draft: StepDraft, consumer: ConsumerId, epoch: Epoch) -> Holding:
    """The holding of a partition that its consumer says it reads."""
    return Holding(
        consumer,
        draft.consumers[consumer].incarnation,
        epoch,
        HoldingStatus.OWNED,
        draft.heartbeat_time_ms,
        draft.now_ms,
        is_acknowledged=True,
    )


def started(draft: StepDraft, message: StartConsumingEvent) -> set[TopicPartition]:
    touched = set()
    for row in message.partitions:
        partition, epoch = row.topic_partition, row.partition_epoch
        _reads(draft, message.sender, partition, epoch)
        if _is_of(draft.holdings.get(partition), message.sender, epoch):
            # Others are not its to tell of, and a forged list of them would only grow.
            _note_offset(draft, partition, row.next_offset)
        touched.add(partition)
    return touched


def _note_offset(draft: StepDraft, partition: TopicPartition, next_offset: int | None) -> None:
    if next_offset is not None:
        draft.ledger_offsets.put(partition, next_offset)


def stopped(draft: StepDraft, message: StopConsumingEvent) -> set[TopicPartition]:
    touched = set()
    for row in message.partitions:
        partition = row.topic_partition
        if not _is_of(draft.holdings.get(partition), message.sender, row.partition_epoch):
            draft.count("stop_of_another_epoch")
            continue
        draft.release(partition)
        _note_offset(draft, partition, row.next_offset)
        touched.add(partition)
        if row.reason in FAILURES:
            until_ms = draft.now_ms + draft.state.settings.failed_partition_retry_ms
            draft.parked.put(partition, Parked(until_ms, row.reason.value, row.detail))
            draft.decide(
                Code.PARTITION_FAILED,
                f"{partition} stopped ({row.reason.value}); tried again in "
                + duration_text(draft.state.settings.failed_partition_retry_ms / 1_000)
                + (f": {row.detail}" if row.detail else ""),
            )
            draft.save()
            note_failure(draft, message.sender, row)
        elif row.reason is StopReason.LEDGER_REFUSED:
            draft.decide(
                Code.PARTITION_GIVEN_UP,
                f"consumer {message.sender} gave up {partition}: the ledger refused its commit",
            )
        elif row.reason is StopReason.TOPIC_MADE_AGAIN:
            draft.decide(
                Code.PARTITION_GIVEN_UP,
                f"consumer {message.sender} gave up {partition}: its topic was made again",
            )
    return touched


def _last_batch_ms(record: ConsumerRecord, message: ConsumerReport) -> int:
    """As long as it was seen to run; one that began after the last report was short."""
    cycle = message.cycle
    has_ended = cycle is not None and (cycle.batches or cycle.log_bytes)
    return record.running_batch_ms if has_ended else record.last_batch_ms


def _running_batch_ms(message: ConsumerReport) -> int:
    if message.works_on is None or message.waits_for is not None:
        return 0
    return message.works_on.since_ms_ago


def reported(draft: StepDraft, message: ConsumerReport) -> set[TopicPartition]:
    """A report also acknowledges: starts of partitions it names, stops of those it does not."""
    consumer = message.sender
    record = explained(draft, draft.consumers[consumer], message)
    capacity_by_topic = learn(draft, message)
    draft.consumers.put(
        consumer,
        changed(
            record,
            capacity_by_topic=capacity_by_topic,
            is_slowed=is_slowed(draft, message, capacity_by_topic),
            proven_topics=proven_topics(record, message),
            last_batch_ms=_last_batch_ms(record, message),
            running_batch_ms=_running_batch_ms(message),
            behind_bytes=message.behind_log_bytes or 0,
            behind_records=message.behind_records or 0,
            behind_by_partition=backlog_of(message),
            next_offsets=next_offsets_of(message),
            unread_records=unread_records_of(message),
            deployment_version=(
                record.deployment_version
                if message.deployment_version is None
                else message.deployment_version
            ),
        ),
    )
    if message.cycle is not None:
        draft.change(carried_bytes=draft.state.carried_bytes + message.cycle.log_bytes)
        if message.cycle.log_bytes:
            carrying = draft.consumers[consumer]
            carried_bytes = carrying.carried_bytes + message.cycle.log_bytes
            draft.consumers.put(
                consumer,
                changed(
                    carrying, has_carried=True, restarts_in_vain=0, carried_bytes=carried_bytes
                ),
            )
            note_carried_records(draft)
    if message.phase is ConsumerPhase.RUNNING and record.status in {
        ConsumerStatus.WANTED,
        ConsumerStatus.CREATING,
        ConsumerStatus.QUERIED,
    }:
        make_ready(draft, consumer)
    touched = {row.topic_partition for row in message.owned}
    for row in message.owned:
        _reads(draft, consumer, row.topic_partition, row.partition_epoch)
    for partition in sorted(draft.held_by(consumer) - touched):
        if draft.holdings[partition].is_acknowledged:
            draft.release(partition)
            touched.add(partition)
    if message.phase is ConsumerPhase.STOPPING:
        begin_leaving(draft, consumer)
    elif message.phase is ConsumerPhase.STOPPED:
        _shut_down(draft, consumer)
    return touched


def _shut_down(draft: StepDraft, consumer: ConsumerId) -> None:
    """Its last report: starts that are still on their way will not be carried out."""
    if draft.held_by(consumer):
        fence(draft, consumer, "shut down")
    else:
        remove(draft, consumer, "it shut down")


def refused(draft: StepDraft, message: CommandRefusedEvent) -> bool:
    """A consumer refused a command. True when the controller's view of it is outdated."""
    draft.count("command_refused")
    if message.reason is RefusalReason.SHUTTING_DOWN:
        begin_leaving(draft, message.sender)
        return False
    if message.reason is RefusalReason.NOT_FROM_LEADER:
        draft.decide(
            Code.MESSAGE_REFUSED,
            f"consumer {message.sender} refused {counted(message.refused_times, 'message')} that "
            f"the leading controller did not write; the last one names controller epoch "
            f"{message.refused_controller_epoch}",
        )
        return False
    if message.reason not in {RefusalReason.STALE_PLAN, RefusalReason.STALE_PARTITION_EPOCH}:
        return False
    if message.refused_controller_epoch != draft.state.controller_epoch:
        return False
    if message.refused_plan_number != draft.state.plan_number:
        return False
    return any(
        holding is not None
        and holding.status is HoldingStatus.STARTING
        and _is_of(holding, message.sender, row.partition_epoch)
        for row in message.partitions
        for holding in (draft.holdings.get(row.topic_partition),)
    )


def apply_message(draft: StepDraft, message: FromConsumer) -> tuple[set[TopicPartition], bool]:
    """Apply a message: the partitions it concerns, and whether the controller is out of step.

    Responses to queries are ignored outside of Synchronize, as the notes say.
    """
    if isinstance(message, ConsumerReport):
        return reported(draft, message), False
    if isinstance(message, StartConsumingEvent):
        return started(draft, message), False
    if isinstance(message, StopConsumingEvent):
        return stopped(draft, message), False
    if isinstance(message, CommandRefusedEvent):
        return set(), refused(draft, message)
    draft.count("response_ignored")
    return set(), False
