"""Consumers come, speak, fall silent and go.

A consumer that is not heard of within its bound is fenced: whatever it held is free to be started
elsewhere under a higher epoch, and its deployment is deleted. It may still run; the lake
refuses what it then tries to commit.
"""

from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import CreateConsumer, DeleteConsumer
from penstock.controller.core.inputs import (
    ConsumerDeleted,
    ConsumerIncident,
    CreationFailed,
    DeploymentsListed,
)
from penstock.controller.core.state import ConsumerRecord, ConsumerStatus, Departing
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import FromConsumer
from penstock.model import ConsumerId

AVAILABLE = frozenset({ConsumerStatus.WANTED, ConsumerStatus.CREATING, ConsumerStatus.READY})


def admit(draft: StepDraft, message: FromConsumer) -> bool:
    """Whether the message is from a consumer of ours, of its present life, and in order."""
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
        draft.count("former_life_spoke")
        return False
    if message.incarnation == record.incarnation and message.sequence <= record.sequence:
        draft.count("out_of_order")
        return False
    if message.incarnation > record.incarnation:
        begin_incarnation(draft, consumer, message.incarnation)
        record = draft.consumers[consumer]
    draft.consumers.put(consumer, replace(record, sequence=message.sequence, heard_ms=draft.now_ms))
    return True


def begin_incarnation(draft: StepDraft, consumer: ConsumerId, incarnation: int) -> None:
    """A consumer has started, or started again: whatever its former life held is free."""
    held = sorted(draft.held_by(consumer))
    for partition in held:
        draft.release(partition)
    if draft.consumers[consumer].incarnation:
        draft.decide(
            Code.CONSUMER_RESTARTED,
            f"consumer {consumer} started again; {len(held)} partitions it had are free",
        )
    draft.consumers.put(
        consumer, replace(draft.consumers[consumer], incarnation=incarnation, sequence=0)
    )
    draft.floor.put(consumer, incarnation)
    draft.save()


def make_ready(draft: StepDraft, consumer: ConsumerId) -> None:
    record = draft.consumers[consumer]
    draft.consumers.put(
        consumer, replace(record, status=ConsumerStatus.READY, since_ms=draft.now_ms)
    )


def begin_leaving(draft: StepDraft, consumer: ConsumerId) -> None:
    """It gets nothing more. Its partitions must find another target."""
    record = draft.consumers[consumer]
    if record.status is not ConsumerStatus.LEAVING:
        draft.consumers.put(
            consumer, replace(record, status=ConsumerStatus.LEAVING, since_ms=draft.now_ms)
        )
        draft.has_lost_a_target = True
        draft.save()


def fence(draft: StepDraft, consumer: ConsumerId, why: str) -> None:
    """Give up on a consumer: take what it holds away, and delete its deployment."""
    held = sorted(draft.held_by(consumer))
    for partition in held:
        draft.release(partition)
    draft.decide(
        Code.CONSUMER_FENCED,
        f"consumer {consumer} {why}: it is fenced, {len(held)} partitions it had are free",
    )
    _depart(draft, consumer)


def remove(draft: StepDraft, consumer: ConsumerId, why: str) -> None:
    """Take away a consumer that holds nothing (S8)."""
    draft.decide(Code.CONSUMER_REMOVED, f"consumer {consumer} is removed: {why}")
    _depart(draft, consumer)


def _depart(draft: StepDraft, consumer: ConsumerId) -> None:
    record = draft.consumers[consumer]
    draft.consumers.drop(consumer)
    if record.incarnation:
        # Its next life is accepted under this number again; the one that ends here is not.
        draft.floor.put(consumer, record.incarnation + 1)
    draft.has_lost_a_target = True
    draft.save()
    if record.status is not ConsumerStatus.WANTED:
        draft.departing.put(consumer, Departing(draft.now_ms, draft.now_ms))
        draft.do(DeleteConsumer(consumer))


def want(draft: StepDraft, version: int | None = None) -> ConsumerId:
    """The number of a consumer to be created: the lowest that is free."""
    number = 1
    while ConsumerId(number) in draft.consumers or ConsumerId(number) in draft.departing:
        number += 1
    consumer = ConsumerId(number)
    draft.consumers.put(
        consumer,
        ConsumerRecord(
            ConsumerStatus.WANTED,
            draft.now_ms,
            deployment_version=draft.state.deployment_version if version is None else version,
        ),
    )
    draft.save()
    return consumer


def create_what_is_wanted(draft: StepDraft) -> None:
    """Ask for wanted consumers as fast as the limit on growth allows."""
    wanted = sorted(
        c for c, record in draft.consumers.now.items() if record.status is ConsumerStatus.WANTED
    )
    if not wanted or draft.now_ms < draft.state.creation_blocked_until_ms:
        return
    settings = draft.state.settings
    recent = tuple(
        at for at in draft.state.creations_ms if draft.now_ms - at < settings.creation_window_ms
    )
    allowed = wanted[: max(0, settings.creations_per_window_max - len(recent))]
    for consumer in allowed:
        record = draft.consumers[consumer]
        draft.consumers.put(
            consumer, replace(record, status=ConsumerStatus.CREATING, since_ms=draft.now_ms)
        )
        draft.do(CreateConsumer(consumer, record.deployment_version))
        draft.decide(Code.CONSUMER_CREATED, f"consumer {consumer} is created")
        draft.save()
    draft.change(creations_ms=recent + (draft.now_ms,) * len(allowed))


def fence_the_silent(draft: StepDraft) -> None:
    """Nothing waits for ever: neither for a report nor for a first one."""
    settings = draft.state.settings
    for consumer in sorted(draft.consumers):
        record = draft.consumers[consumer]
        if record.status in {ConsumerStatus.READY, ConsumerStatus.LEAVING}:
            if draft.now_ms - record.heard_ms > settings.silence_ms_max:
                fence(draft, consumer, f"was not heard of for {settings.silence_ms_max} ms")
        elif (
            record.status is ConsumerStatus.CREATING
            and draft.now_ms - record.since_ms > settings.creation_ms_max
        ):
            fence(draft, consumer, f"did not come up within {settings.creation_ms_max} ms")
            _hold_creations_back(draft)


def delete_again(draft: StepDraft) -> None:
    """A deletion that was not confirmed is asked for again; deleting twice does no harm."""
    for consumer in sorted(draft.departing):
        departing = draft.departing[consumer]
        if draft.now_ms - departing.sent_ms >= draft.state.settings.delete_resend_ms:
            draft.departing.put(consumer, replace(departing, sent_ms=draft.now_ms))
            draft.do(DeleteConsumer(consumer))


def deleted(draft: StepDraft, given: ConsumerDeleted) -> None:
    draft.departing.drop(given.consumer)
    if given.consumer in draft.consumers:
        # Somebody else deleted it, or an old answer came late: the list will tell.
        draft.ask_for_list()


def incident(draft: StepDraft, given: ConsumerIncident) -> None:
    """For whoever looks at the history. A consumer that does not come up is given up in time."""
    draft.decide(Code.CONSUMER_INCIDENT, f"consumer {given.consumer}: {given.explanation[:200]}")


def creation_failed(draft: StepDraft, given: CreationFailed) -> None:
    """It could not be deployed: what it should have carried needs another plan."""
    record = draft.consumers.get(given.consumer)
    if record is None or record.status is not ConsumerStatus.CREATING:
        draft.count("late_creation_failure")
        return
    draft.decide(Code.CREATION_FAILED, f"consumer {given.consumer}: {given.reason[:80]}")
    _depart(draft, given.consumer)
    _hold_creations_back(draft)


def _hold_creations_back(draft: StepDraft) -> None:
    draft.change(creation_blocked_until_ms=draft.now_ms + draft.state.settings.creation_backoff_ms)


def compare_with_list(draft: StepDraft, given: DeploymentsListed) -> None:
    """Adopt what is deployed and unknown; forget what departs and is gone.

    A consumer of ours that is not listed is left to its silence: a list may be stale, and
    only reports tell whether a process lives.
    """
    draft.change(listed_ms=draft.now_ms)
    for consumer in sorted(draft.departing):
        if consumer not in given.consumers:
            draft.departing.drop(consumer)
    for consumer in sorted(given.consumers):
        if consumer not in draft.consumers and consumer not in draft.departing:
            draft.consumers.put(
                consumer,
                ConsumerRecord(
                    ConsumerStatus.CREATING,
                    draft.now_ms,
                    deployment_version=given.consumers[consumer].version,
                ),
            )
            draft.decide(Code.CONSUMER_ADOPTED, f"consumer {consumer} is deployed and was unknown")
            draft.save()
