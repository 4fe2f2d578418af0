"""Consumers come, speak, fall silent and go.

A consumer that is not heard of within its bound is fenced: whatever it held is free to be started
elsewhere under a higher epoch, and its deployment is deleted. It may still run (H10); the lake
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
from penstock.controller.core.step_draft import Turn
from penstock.messages import FromConsumer
from penstock.model import ConsumerId

AVAILABLE = frozenset({ConsumerStatus.WANTED, ConsumerStatus.CREATING, ConsumerStatus.READY})


def admit(turn: Turn, message: FromConsumer) -> bool:
    """Whether the message is from a consumer of ours, of its present life, and in order."""
    consumer = message.sender
    record = turn.consumers.get(consumer)
    if record is None:
        if consumer in turn.departing:
            turn.count("departed_consumer_spoke")
        else:
            turn.count("unknown_consumer_spoke")
            turn.ask_for_list()
        return False
    if message.incarnation < max(turn.floor.get(consumer) or 0, record.incarnation):
        turn.count("former_life_spoke")
        return False
    if message.incarnation == record.incarnation and message.sequence <= record.sequence:
        turn.count("out_of_order")
        return False
    if message.incarnation > record.incarnation:
        begin_life(turn, consumer, message.incarnation)
        record = turn.consumers[consumer]
    turn.consumers.put(consumer, replace(record, sequence=message.sequence, heard_ms=turn.now_ms))
    return True


def begin_life(turn: Turn, consumer: ConsumerId, incarnation: int) -> None:
    """A consumer has started, or started again: whatever its former life held is free."""
    held = sorted(turn.held_by(consumer))
    for partition in held:
        turn.release(partition)
    if turn.consumers[consumer].incarnation:
        turn.decide(
            Code.CONSUMER_RESTARTED,
            f"consumer {consumer} started again; {len(held)} partitions it had are free",
        )
    turn.consumers.put(
        consumer, replace(turn.consumers[consumer], incarnation=incarnation, sequence=0)
    )
    turn.floor.put(consumer, incarnation)
    turn.save()


def make_ready(turn: Turn, consumer: ConsumerId) -> None:
    record = turn.consumers[consumer]
    turn.consumers.put(consumer, replace(record, status=ConsumerStatus.READY, since_ms=turn.now_ms))


def begin_leaving(turn: Turn, consumer: ConsumerId) -> None:
    """It gets nothing more. Its partitions must find another target."""
    record = turn.consumers[consumer]
    if record.status is not ConsumerStatus.LEAVING:
        turn.consumers.put(
            consumer, replace(record, status=ConsumerStatus.LEAVING, since_ms=turn.now_ms)
        )
        turn.has_lost_a_target = True
        turn.save()


def fence(turn: Turn, consumer: ConsumerId, why: str) -> None:
    """Give up on a consumer: take what it holds away, and delete its deployment."""
    held = sorted(turn.held_by(consumer))
    for partition in held:
        turn.release(partition)
    turn.decide(
        Code.CONSUMER_FENCED,
        f"consumer {consumer} {why}: it is fenced, {len(held)} partitions it had are free",
    )
    _depart(turn, consumer)


def remove(turn: Turn, consumer: ConsumerId, why: str) -> None:
    """Take away a consumer that holds nothing (S8)."""
    turn.decide(Code.CONSUMER_REMOVED, f"consumer {consumer} is removed: {why}")
    _depart(turn, consumer)


def _depart(turn: Turn, consumer: ConsumerId) -> None:
    record = turn.consumers[consumer]
    turn.consumers.drop(consumer)
    if record.incarnation:
        # Its next life is accepted under this number again; the one that ends here is not.
        turn.floor.put(consumer, record.incarnation + 1)
    turn.has_lost_a_target = True
    turn.save()
    if record.status is not ConsumerStatus.WANTED:
        turn.departing.put(consumer, Departing(turn.now_ms, turn.now_ms))
        turn.do(DeleteConsumer(consumer))


def want(turn: Turn, version: int | None = None) -> ConsumerId:
    """The number of a consumer to be created: the lowest that is free."""
    number = 1
    while ConsumerId(number) in turn.consumers or ConsumerId(number) in turn.departing:
        number += 1
    consumer = ConsumerId(number)
    turn.consumers.put(
        consumer,
        ConsumerRecord(
            ConsumerStatus.WANTED,
            turn.now_ms,
            deployment_version=turn.state.deployment_version if version is None else version,
        ),
    )
    turn.save()
    return consumer


def create_what_is_wanted(turn: Turn) -> None:
    """Ask for wanted consumers as fast as the limit on growth allows."""
    wanted = sorted(
        c for c, record in turn.consumers.now.items() if record.status is ConsumerStatus.WANTED
    )
    if not wanted or turn.now_ms < turn.state.creation_blocked_until_ms:
        return
    settings = turn.state.settings
    recent = tuple(
        at for at in turn.state.creations_ms if turn.now_ms - at < settings.creation_window_ms
    )
    allowed = wanted[: max(0, settings.creations_per_window_max - len(recent))]
    for consumer in allowed:
        record = turn.consumers[consumer]
        turn.consumers.put(
            consumer, replace(record, status=ConsumerStatus.CREATING, since_ms=turn.now_ms)
        )
        turn.do(CreateConsumer(consumer, record.deployment_version))
        turn.decide(Code.CONSUMER_CREATED, f"consumer {consumer} is created")
        turn.save()
    turn.change(creations_ms=recent + (turn.now_ms,) * len(allowed))


def fence_the_silent(turn: Turn) -> None:
    """Nothing waits for ever: neither for a report nor for a first one."""
    settings = turn.state.settings
    for consumer in sorted(turn.consumers):
        record = turn.consumers[consumer]
        if record.status in {ConsumerStatus.READY, ConsumerStatus.LEAVING}:
            if turn.now_ms - record.heard_ms > settings.silence_ms_max:
                fence(turn, consumer, f"was not heard of for {settings.silence_ms_max} ms")
        elif (
            record.status is ConsumerStatus.CREATING
            and turn.now_ms - record.since_ms > settings.creation_ms_max
        ):
            fence(turn, consumer, f"did not come up within {settings.creation_ms_max} ms")
            _hold_creations_back(turn)


def delete_again(turn: Turn) -> None:
    """A deletion that was not confirmed is asked for again; deleting twice does no harm."""
    for consumer in sorted(turn.departing):
        departing = turn.departing[consumer]
        if turn.now_ms - departing.sent_ms >= turn.state.settings.delete_resend_ms:
            turn.departing.put(consumer, replace(departing, sent_ms=turn.now_ms))
            turn.do(DeleteConsumer(consumer))


def deleted(turn: Turn, given: ConsumerDeleted) -> None:
    turn.departing.drop(given.consumer)
    if given.consumer in turn.consumers:
        # Somebody else deleted it, or an old answer came late: the list will tell.
        turn.ask_for_list()


def incident(turn: Turn, given: ConsumerIncident) -> None:
    """For whoever looks at the history. A consumer that does not come up is given up in time."""
    turn.decide(Code.CONSUMER_INCIDENT, f"consumer {given.consumer}: {given.words[:200]}")


def creation_failed(turn: Turn, given: CreationFailed) -> None:
    """It could not be deployed: what it should have carried needs another plan."""
    record = turn.consumers.get(given.consumer)
    if record is None or record.status is not ConsumerStatus.CREATING:
        turn.count("late_creation_failure")
        return
    turn.decide(Code.CREATION_FAILED, f"consumer {given.consumer}: {given.reason[:80]}")
    _depart(turn, given.consumer)
    _hold_creations_back(turn)


def _hold_creations_back(turn: Turn) -> None:
    turn.change(creation_blocked_until_ms=turn.now_ms + turn.state.settings.creation_backoff_ms)


def compare_with_list(turn: Turn, given: DeploymentsListed) -> None:
    """Adopt what is deployed and unknown; forget what departs and is gone.

    A consumer of ours that is not listed is left to its silence: a list may be stale (K2), and
    only reports tell whether a process lives.
    """
    turn.change(listed_ms=turn.now_ms)
    for consumer in sorted(turn.departing):
        if consumer not in given.consumers:
            turn.departing.drop(consumer)
    for consumer in sorted(given.consumers):
        if consumer not in turn.consumers and consumer not in turn.departing:
            turn.consumers.put(
                consumer,
                ConsumerRecord(
                    ConsumerStatus.CREATING,
                    turn.now_ms,
                    deployment_version=given.consumers[consumer].version,
                ),
            )
            turn.decide(Code.CONSUMER_ADOPTED, f"consumer {consumer} is deployed and was unknown")
            turn.save()
