"""Which commands and queries a consumer obeys, and which it refuses with a reason.

It obeys what the leading controller has written for this consumer, in this incarnation, by the
newest controller and plan it has seen. An epoch that has ended here never begins again. A query is
answered only when every command before it has taken effect, or waits for a ledger that cannot be
read.
"""

from penstock.consumer.core.effects import LogLevel
from penstock.consumer.core.inputs import Command, MessagesRead
from penstock.consumer.core.ownership import Ownership, PendingQuery, stops_first
from penstock.consumer.core.step_draft import StepDraft, is_unsettled
from penstock.messages import RefusalReason, StartConsumingCommand, StateQuery, StopReason
from penstock.model import Epoch, TopicPartition
from penstock.model.changed import changed


def read_messages(draft: StepDraft, given: MessagesRead) -> None:
    """Stops, then starts, then queries: a query sees what was commanded before it."""
    commands = [one for one in given.messages if not isinstance(one, StateQuery)]
    for command in stops_first(commands):
        _obey(draft, command)
    for one in given.messages:
        if isinstance(one, StateQuery):
            _accept_query(draft, one)
    for one in given.not_from_leader:
        _refuse_foreign(draft, one)


def _refuse_foreign(draft: StepDraft, message: Command | StateQuery) -> None:
    """Nothing in it counts, its epoch least of all. Told the first time, the 2nd, 4th, 8th...

    Whoever can write here can write often: every refusal would be a message to the controller.
    """
    times = draft.own.refused_as_foreign + 1
    draft.own = changed(draft.own, refused_as_foreign=times)
    if times & (times - 1) == 0:
        draft.events.refuse(message, RefusalReason.NOT_FROM_LEADER, {}, times=times)
        draft.log(
            LogLevel.WARNING,
            "message_refused",
            why=RefusalReason.NOT_FROM_LEADER.value,
            message=message.event_type,
            controller_epoch=message.controller_epoch,
            times=times,
        )


def _obey(draft: StepDraft, command: Command) -> None:
    reason = _why_not(draft.own, command)
    if reason is not None:
        rows = {row.topic_partition: row.partition_epoch for row in command.partitions}
        draft.events.refuse(command, reason, rows)
        return
    _accept_orders(draft, command.controller_epoch, command.plan_number)
    stale: dict[TopicPartition, Epoch] = {}
    take = _start if isinstance(command, StartConsumingCommand) else _stop
    for row in command.partitions:
        if not take(draft, row.topic_partition, row.partition_epoch):
            stale[row.topic_partition] = row.partition_epoch
    if stale:
        draft.events.refuse(command, RefusalReason.STALE_PARTITION_EPOCH, stale)


def _why_not(own: Ownership, command: Command) -> RefusalReason | None:
    """Each check has a reason of its own."""
    if command.consumer_id != own.consumer_id:
        return RefusalReason.OTHER_CONSUMER
    if command.controller_epoch < own.controller_epoch:
        return RefusalReason.STALE_CONTROLLER_EPOCH
    if command.incarnation != own.incarnation:
        return RefusalReason.OTHER_INCARNATION
    newest = (own.controller_epoch, own.plan_number)
    if (command.controller_epoch, command.plan_number) < newest:
        return RefusalReason.STALE_PLAN
    if own.is_shutting_down and isinstance(command, StartConsumingCommand):
        return RefusalReason.SHUTTING_DOWN
    return None


def _accept_orders(draft: StepDraft, controller_epoch: int, plan_number: int) -> None:
    if controller_epoch > draft.own.controller_epoch:
        draft.ended = {
            p: epoch
            for p, epoch in draft.ended.items()
            if epoch.controller_epoch >= controller_epoch
        }
    draft.own = changed(draft.own, controller_epoch=controller_epoch, plan_number=plan_number)
    draft.events.orders = (controller_epoch, plan_number)


def _start(draft: StepDraft, partition: TopicPartition, epoch: Epoch) -> bool:
    """Begin to read; confirm it again if it is being read. False when the epoch is stale."""
    owned = draft.owned.get(partition)
    ended = draft.ended.get(partition)
    if (ended is not None and epoch <= ended) or (owned is not None and epoch < owned.epoch):
        return False
    if owned is None:
        draft.begin(partition, epoch)
    elif epoch == owned.epoch:
        if owned.next_offset is not None and owned.ending is None:
            draft.events.started(partition, epoch, owned.next_offset)
    elif owned.is_in_batch or owned.ending is not None:
        draft.owned[partition] = changed(owned, next_epoch=epoch)
    else:
        draft.begin(partition, epoch)
    return True


def _stop(draft: StepDraft, partition: TopicPartition, epoch: Epoch) -> bool:
    """Stop once the running batch is over; confirm it again if it is not read. False when stale."""
    owned = draft.owned.get(partition)
    if owned is not None and epoch < owned.epoch:
        return False
    if owned is None:
        draft.ended[partition] = max(epoch, draft.ended.get(partition, epoch))
        draft.events.stopped(partition, epoch, None, StopReason.COMMANDED, "")
        return True
    if owned.next_epoch is not None and owned.next_epoch <= epoch:
        owned = changed(owned, next_epoch=None)
    # The stop may name an epoch whose start never came: nothing of it may begin later, and what
    # is in flight under the older one ends first.
    draft.owned[partition] = changed(owned, epoch=epoch, ending=StopReason.COMMANDED)
    if not owned.is_in_batch:
        draft.end(partition, StopReason.COMMANDED)
    return True


def _accept_query(draft: StepDraft, query: StateQuery) -> None:
    """Answered at the end of the step if nothing is pending, else once it has taken effect."""
    own = draft.own
    newest = (own.controller_epoch, own.plan_number)
    is_ours = query.consumer_id == own.consumer_id
    if not is_ours or (query.controller_epoch, query.plan_number) < newest:
        draft.events.refuse(
            query,
            RefusalReason.STALE_CONTROLLER_EPOCH if is_ours else RefusalReason.OTHER_CONSUMER,
            {},
        )
        return
    _accept_orders(draft, query.controller_epoch, query.plan_number)
    waiting_for = frozenset(p for p in draft.owned if is_unsettled(draft, p))
    pending = PendingQuery(query.controller_epoch, query.query_number, waiting_for)
    # Only the newest query matters to the controller that asked it.
    draft.own = changed(draft.own, queries=(pending,))
