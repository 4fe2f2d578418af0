"""Which consumers there are: created, reporting, ended, removed.

A consumer that is given up (see `silence`) is fenced: its partitions are started elsewhere under a
higher epoch, and its deployment is deleted. Its process may still run; the ledger refuses what it
then tries to commit.
"""

from collections.abc import Iterator
from itertools import chain, count

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import CreateConsumer, DeleteConsumer
from penstock.controller.core.inputs import (
    ConsumerDeleted,
    ConsumerIncident,
    CreationFailed,
    DeploymentsListed,
    ListingFailed,
)
from penstock.controller.core.state import ConsumerRecord, ConsumerStatus
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import FromConsumer
from penstock.model import ConsumerId
from penstock.model.changed import changed
from penstock.model.sentences import counted, duration_text

# The window of `creations_per_minute_max`.
MINUTE_MS = 60_000

# Enough to know the usual, and few enough to forget one start that was slower than all others.
STARTS_REMEMBERED = 20
HAVE_REPORTED = frozenset({ConsumerStatus.READY, ConsumerStatus.LEAVING})
AVAILABLE = frozenset({ConsumerStatus.WANTED, ConsumerStatus.CREATING, ConsumerStatus.READY})


def admit(draft: StepDraft, message: FromConsumer) -> bool:
    """Whether the message is from a known consumer, of its current incarnation, and in order."""
    consumer = message.sender
    record = draft.consumers.get(consumer)
    if record is None:
        if consumer in draft.departing:
            draft.count("departed_consumer_spoke")
        else:
            draft.count("unknown_consumer_spoke")
            draft.ask_for_list()
        return False
    if message.incarnation < max(draft.floor.get(consumer) or 0, record.incarnation):
        draft.count("former_incarnation_spoke")
        return False
    if message.incarnation == record.incarnation and message.sequence <= record.sequence:
        draft.count("out_of_order")
        return False
    if message.incarnation > record.incarnation:
        begin_incarnation(draft, consumer, message.incarnation)
        record = draft.consumers[consumer]
    draft.consumers.put(
        consumer,
        changed(
            record,
            sequence=message.sequence,
            heard_ms=draft.now_ms,
            heard_heartbeat_time_ms=draft.heartbeat_time_ms,
        ),
    )
    return True


def begin_incarnation(draft: StepDraft, consumer: ConsumerId, incarnation: int) -> None:
    """A consumer has started, or started again: the partitions it had before are free."""
    held = sorted(draft.held_by(consumer))
    for partition in held:
        draft.release(partition)
    if draft.consumers[consumer].incarnation:
        draft.decide(
            Code.CONSUMER_RESTARTED,
            f"consumer {consumer} started again; {counted(len(held), 'partition')} to start anew",
        )
    record = draft.consumers[consumer]
    draft.consumers.put(
        consumer,
        changed(
            record,
            incarnation=incarnation,
            sequence=0,
            has_carried=False,
            began_heartbeat_time_ms=draft.heartbeat_time_ms,
            restarts_in_vain=record.restarts_in_vain + 1 if _was_in_vain(draft, record) else 0,
        ),
    )
    draft.floor.put(consumer, incarnation)
    draft.save()


def _was_in_vain(draft: StepDraft, record: ConsumerRecord) -> bool:
    """Whether it ended before it had carried anything, and was not up for `patience` either.

    A spare, or a consumer of topics that nobody writes to, never carries. It does stay up.
    """
    if not record.incarnation or record.has_carried:
        return False
    was_up_ms = record.heard_heartbeat_time_ms - record.began_heartbeat_time_ms
    return was_up_ms < draft.state.settings.patience_ms


def make_ready(draft: StepDraft, consumer: ConsumerId) -> None:
    """It is up. How long that took tells how long others may take.

    Counted as `_late_starts` does: a wait for a node or an image is not part of it.
    """
    record = draft.consumers[consumer]
    since_ms = max(record.since_heartbeat_time_ms, record.starting_heartbeat_time_ms)
    took_ms = draft.heartbeat_time_ms - since_ms
    if record.status is ConsumerStatus.CREATING:
        draft.change(starts_took_ms=(*draft.state.starts_took_ms, took_ms)[-STARTS_REMEMBERED:])
    draft.consumers.put(consumer, in_status(draft, record, ConsumerStatus.READY))


def in_status(draft: StepDraft, record: ConsumerRecord, status: ConsumerStatus) -> ConsumerRecord:
    return changed(record, status=status, since_heartbeat_time_ms=draft.heartbeat_time_ms)


def begin_leaving(draft: StepDraft, consumer: ConsumerId) -> None:
    """It gets no more partitions, and those it has need another consumer."""
    record = draft.consumers[consumer]
    if record.status is not ConsumerStatus.LEAVING:
        draft.consumers.put(consumer, in_status(draft, record, ConsumerStatus.LEAVING))
        draft.has_lost_a_target = True
        draft.save()


def fence(draft: StepDraft, consumer: ConsumerId, why: str) -> None:
    """Give up on a consumer: take its partitions away, and delete its deployment."""
    held = sorted(draft.held_by(consumer))
    for partition in held:
        draft.release(partition)
    draft.decide(
        Code.CONSUMER_FENCED,
        f"consumer {consumer} {why}: fenced, {counted(len(held), 'partition')} to start elsewhere",
    )
    _depart(draft, consumer)


def remove(draft: StepDraft, consumer: ConsumerId, why: str) -> None:
    """Remove a consumer that has no partitions (S8)."""
    draft.decide(Code.CONSUMER_REMOVED, f"consumer {consumer} is removed: {why}")
    _depart(draft, consumer)


def _depart(draft: StepDraft, consumer: ConsumerId) -> None:
    record = draft.consumers[consumer]
    draft.consumers.drop(consumer)
    if record.incarnation:
        # The number may be used again, but only by a later incarnation.
        draft.floor.put(consumer, record.incarnation + 1)
    draft.has_lost_a_target = True
    draft.save()
    if record.status is not ConsumerStatus.WANTED:
        draft.departing.put(consumer, draft.now_ms)
        draft.do(DeleteConsumer(consumer))


def may_grow(draft: StepDraft) -> bool:
    """Whether the maximum allows one more consumer."""
    number = sum(record.status in AVAILABLE for record in draft.consumers.now.values())
    return number < draft.state.settings.consumers_max


def free_numbers(draft: StepDraft) -> Iterator[ConsumerId]:
    """The numbers that no consumer has and none is leaving, from the lowest on.

    Those whose creation failed lately come after the others up to the maximum, the first to fail
    first: what failed may be bound to the number, like a volume that cannot be attached.
    """
    most, until_ms = draft.state.settings.consumers_max, draft.state.avoided_numbers
    lowest = (ConsumerId(number) for number in range(1, most + 1))
    avoided = {c for c, end_ms in until_ms.items() if end_ms > draft.now_ms and c <= most}
    numbers = chain(
        (c for c in lowest if c not in avoided),
        sorted(avoided, key=lambda c: (until_ms[c], c)),
        (ConsumerId(number) for number in count(most + 1)),
    )
    return (c for c in numbers if c not in draft.consumers and c not in draft.departing)


def want_one_more(draft: StepDraft) -> ConsumerId | None:
    """Ask for a new consumer, under the lowest free number; None when the group is full (S7)."""
    if not may_grow(draft):
        return None
    consumer = next(free_numbers(draft))
    want(draft, consumer)
    return consumer


def want(draft: StepDraft, consumer: ConsumerId) -> None:
    """Ask for a new consumer under a number that is free."""
    draft.consumers.put(
        consumer,
        ConsumerRecord(
            ConsumerStatus.WANTED,
            draft.heartbeat_time_ms,
            deployment_version=draft.state.deployment_version,
        ),
    )
    draft.save()


def avoid_number(draft: StepDraft, consumer: ConsumerId) -> None:
    """Use other numbers for a while."""
    now_ms, wait_ms = draft.now_ms, draft.state.settings.number_retry_ms
    kept = {c: until for c, until in draft.state.avoided_numbers.items() if until > now_ms}
    draft.change(avoided_numbers={**kept, consumer: now_ms + wait_ms})
    draft.save()


def create_what_is_wanted(draft: StepDraft) -> None:
    """Ask for wanted consumers as fast as the limit on growth allows."""
    wanted = sorted(
        c for c, record in draft.consumers.now.items() if record.status is ConsumerStatus.WANTED
    )
    if not wanted or draft.now_ms < draft.state.creation_blocked_until_ms:
        return
    settings = draft.state.settings
    recent = tuple(at for at in draft.state.creations_ms if draft.now_ms - at < MINUTE_MS)
    allowed = wanted[: max(0, settings.creations_per_minute_max - len(recent))]
    for consumer in allowed:
        record = draft.consumers[consumer]
        draft.consumers.put(consumer, in_status(draft, record, ConsumerStatus.CREATING))
        draft.do(CreateConsumer(consumer, record.deployment_version))
        draft.decide(Code.CONSUMER_CREATED, f"consumer {consumer} is created")
        draft.save()
    draft.change(creations_ms=recent + (draft.now_ms,) * len(allowed))


def delete_again(draft: StepDraft) -> None:
    """Ask again for deletions that were not confirmed; deleting twice does no harm."""
    for consumer in sorted(draft.departing):
        asked_ms = draft.departing[consumer]
        if draft.now_ms - asked_ms >= draft.state.settings.delete_resend_ms:
            draft.departing.put(consumer, draft.now_ms)
            draft.do(DeleteConsumer(consumer))


def deleted(draft: StepDraft, given: ConsumerDeleted) -> None:
    draft.departing.drop(given.consumer)
    if given.consumer in draft.consumers:
        # Another program deleted it, or an old answer came late: the list shows which.
        draft.ask_for_list()


def incident(draft: StepDraft, given: ConsumerIncident) -> None:
    """Recorded in the history; a confirmed end frees the consumer's partitions at once.

    The deployment starts it again, so it comes up like a new one, or is given up in time.
    """
    draft.decide(Code.CONSUMER_INCIDENT, f"consumer {given.consumer}: {given.explanation[:200]}")
    record = draft.consumers.get(given.consumer)
    if not given.has_ended or record is None or record.status not in HAVE_REPORTED:
        return
    held = sorted(draft.held_by(given.consumer))
    for partition in held:
        draft.release(partition)
    if record.status is ConsumerStatus.READY:
        draft.consumers.put(given.consumer, in_status(draft, record, ConsumerStatus.CREATING))
    draft.decide(
        Code.CONSUMER_ENDED,
        f"the process of consumer {given.consumer} is gone: "
        f"{counted(len(held), 'partition')} to start anew",
    )
    draft.save()


def creation_failed(draft: StepDraft, given: CreationFailed) -> None:
    """It could not be deployed: the partitions meant for it need another plan."""
    record = draft.consumers.get(given.consumer)
    if record is None or record.status is not ConsumerStatus.CREATING:
        draft.count("late_creation_failure")
        return
    draft.decide(Code.CREATION_FAILED, f"consumer {given.consumer}: {given.reason[:80]}")
    _depart(draft, given.consumer)
    avoid_number(draft, given.consumer)
    hold_creations_back(draft)


def hold_creations_back(draft: StepDraft) -> None:
    draft.change(creation_blocked_until_ms=draft.now_ms + draft.state.settings.creation_retry_ms)


def listing_failed(draft: StepDraft, given: ListingFailed) -> None:
    """List again after `list_retry`. The history has the first failure in a row."""
    settings = draft.state.settings
    if not draft.state.has_listing_failed:
        draft.decide(
            Code.LISTING_FAILED,
            f"the deployments cannot be listed: {given.reason[:200]}; they are listed again "
            f"every {duration_text(settings.list_retry_ms / 1_000)}",
        )
    draft.count("listing_failed")
    again_ms = draft.now_ms + settings.list_retry_ms
    draft.change(has_listing_failed=True, list_again_ms=again_ms)


def compare_with_list(draft: StepDraft, given: DeploymentsListed) -> None:
    """Adopt deployed consumers that are unknown; forget departing ones that are gone.

    A known consumer that is not listed stays: a list may be stale, and only missing reports show
    that a process is gone.
    """
    draft.change(listed_ms=draft.now_ms, has_listing_failed=False, list_again_ms=None)
    note_what_is_listed(draft, given)
    for consumer in sorted(draft.departing):
        if consumer not in given.consumers:
            draft.departing.drop(consumer)
    for consumer in sorted(given.consumers):
        if consumer not in draft.consumers and consumer not in draft.departing:
            draft.consumers.put(
                consumer,
                ConsumerRecord(
                    ConsumerStatus.CREATING,
                    draft.heartbeat_time_ms,
                    deployment_version=given.consumers[consumer].version,
                    is_starting=given.consumers[consumer].is_starting,
                    listed_heartbeat_time_ms=draft.heartbeat_time_ms,
                    starting_heartbeat_time_ms=draft.heartbeat_time_ms,
                ),
            )
            draft.decide(Code.CONSUMER_ADOPTED, f"consumer {consumer} is deployed and was unknown")
            draft.save()


def note_what_is_listed(draft: StepDraft, given: DeploymentsListed) -> None:
    """Of each known consumer: whether the deployment says that it still starts."""
    for consumer, record in list(draft.consumers.now.items()):
        if record.status in {ConsumerStatus.CREATING, ConsumerStatus.QUERIED}:
            listed = given.consumers.get(consumer)
            is_starting = listed is not None and listed.is_starting
            was_starting = record.is_starting or is_starting
            noted = changed(
                record,
                is_starting=is_starting,
                listed_heartbeat_time_ms=draft.heartbeat_time_ms,
                starting_heartbeat_time_ms=(
                    draft.heartbeat_time_ms if was_starting else record.starting_heartbeat_time_ms
                ),
            )
            draft.consumers.put(consumer, noted)
