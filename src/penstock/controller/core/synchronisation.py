"""Synchronize: learn what every consumer owns, before anything is decided.

List the deployments, query each consumer, take nothing but answers, and go on when all have
answered. The notes would wait for ever for a dead consumer; here consumers that say nothing for
`synchronise` are fenced. One that reports is waited for up to `patience`: its answer follows the
commands before the query. A start that waits for its ledger is named as one, and goes on. One that
still starts owns nothing, and is not waited for. When nothing is deployed this is the first start,
and there is nothing to learn.
"""

from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import CreateConsumer, Send
from penstock.controller.core.heartbeats import count_returned
from penstock.controller.core.holdings import acknowledged, was_given_out
from penstock.controller.core.inputs import (
    ConsumerDeleted,
    ConsumerMessageRead,
    DeploymentsListed,
    HeartbeatReturned,
    Tick,
)
from penstock.controller.core.membership import fence, in_status, note_what_is_listed
from penstock.controller.core.silence import has_been_quiet, now_given_up
from penstock.controller.core.state import (
    ConsumerRecord,
    ConsumerStatus,
    Holding,
    HoldingStatus,
    Phase,
)
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import StateQuery, StateQueryResponse
from penstock.model import ConsumerId, TopicPartition
from penstock.model.changed import changed
from penstock.model.sentences import counted, duration_text


def enter(draft: StepDraft) -> None:
    """Forget what was known of consumers and partitions, and query."""
    for partition in sorted(draft.holdings):
        draft.release(partition)
    for consumer in sorted(draft.consumers):
        record = draft.consumers[consumer]
        draft.consumers.drop(consumer)
        if record.status is not ConsumerStatus.WANTED:
            # Only a consumer that never reported can own nothing.
            is_new = record.status is ConsumerStatus.CREATING and not record.incarnation
            _expect(draft, consumer, record.deployment_version, is_new=is_new)
    draft.forget_open()
    draft.change(
        plan=None,
        plan_number=draft.state.plan_number + 1,
        is_listed=False,
        is_confirming=False,
        is_confirmed=False,
        answers={},
        idle_since_ms=None,
        shared_silence=None,
    )
    draft.ask_for_list()
    draft.save()


def tick(draft: StepDraft, _: Tick) -> None:
    """Query again. Whom to wait for is judged when a heartbeat came back."""
    settings = draft.state.settings
    if not draft.state.is_listed:
        if draft.now_ms - draft.state.asked_ms >= settings.command_resend_ms:
            draft.ask_for_list()
        return
    if draft.now_ms - draft.state.asked_ms >= settings.command_resend_ms:
        _ask(draft, _missing(draft))
        if draft.state.is_confirming:
            draft.ask_for_list()


def _missing(draft: StepDraft) -> list[ConsumerId]:
    return [c for c in sorted(draft.consumers) if c not in draft.state.answers]


def heartbeat_returned(draft: StepDraft, given: HeartbeatReturned) -> None:
    """After `synchronise`, give up who says nothing, and go on without those that still start."""
    if not count_returned(draft, given) or not draft.state.is_listed:
        return
    settings = draft.state.settings
    waited_ms = draft.heartbeat_time_ms - draft.state.synchronising_since_heartbeat_time_ms
    if waited_ms < settings.synchronise_ms:
        return
    if (
        draft.state.relisted_heartbeat_time_ms
        < draft.heartbeat_time_ms - waited_ms + settings.synchronise_ms
    ):
        draft.ask_for_list()  # whether a consumer still starts is judged by a newer list
        return
    starting = {c for c in _missing(draft) if _is_starting(draft.consumers[c])}
    late = {}
    for consumer in _missing(draft):
        is_quiet = has_been_quiet(draft, draft.consumers[consumer], settings.synchronise_ms)
        if consumer not in starting and (is_quiet or waited_ms >= settings.patience_ms):
            late[consumer] = f"did not answer within {duration_text(waited_ms / 1_000)}"
    for consumer in now_given_up(draft, late, ()):
        fence(draft, consumer, late[consumer])
    if starting.issuperset(_missing(draft)):
        _finish(draft)


def _is_starting(record: ConsumerRecord) -> bool:
    """Whether it has not said anything, and can own nothing: it never ran."""
    return not record.heard_ms and (record.is_starting or record.is_new)


def listed(draft: StepDraft, given: DeploymentsListed) -> None:
    """Query every consumer that is deployed with the group's label.

    A list may be stale. So it also queries consumers from the saved state, and lists once more
    before it goes on. Who is not in a list that is current was ended while no controller ran, and
    is not waited for.
    """
    if given.is_current:
        _drop_who_is_gone(draft, given)
    known = set(draft.consumers)
    draft.change(has_listing_failed=False, list_again_ms=None)
    for consumer in sorted(draft.departing):
        if consumer not in given.consumers:
            draft.departing.drop(consumer)
    for consumer, deployed in sorted(given.consumers.items()):
        if consumer not in draft.departing and consumer not in known:
            _expect(draft, consumer, deployed.version)
    note_what_is_listed(draft, given)
    draft.change(relisted_heartbeat_time_ms=draft.heartbeat_time_ms)
    if not draft.state.is_listed:
        draft.change(
            is_listed=True,
            listed_ms=draft.now_ms,
            synchronising_since_heartbeat_time_ms=draft.heartbeat_time_ms,
        )
        _ask(draft, sorted(draft.consumers))
    elif draft.state.is_confirming:
        draft.change(is_confirmed=True, is_confirming=False)
        _ask(draft, sorted(set(draft.consumers) - known))
    _finish_if_all_answered(draft)


def _drop_who_is_gone(draft: StepDraft, given: DeploymentsListed) -> None:
    """One that never reported may be on its way into the list; one that was heard is there."""
    for consumer in sorted(set(draft.consumers) - set(given.consumers)):
        record = draft.consumers[consumer]
        if not record.is_new and not record.heard_ms:
            draft.consumers.drop(consumer)
            explanation = f"consumer {consumer} is removed: it is not deployed any more"
            draft.decide(Code.CONSUMER_REMOVED, explanation)
            draft.save()


def _expect(draft: StepDraft, consumer: ConsumerId, version: int, *, is_new: bool = False) -> None:
    record = ConsumerRecord(
        ConsumerStatus.QUERIED,
        draft.heartbeat_time_ms,
        heard_heartbeat_time_ms=draft.heartbeat_time_ms,
        deployment_version=version,
        is_new=is_new,
    )
    draft.consumers.put(consumer, record)


def _ask(draft: StepDraft, consumers: list[ConsumerId]) -> None:
    if not consumers:
        return
    number = draft.state.queries_sent + 1
    draft.change(queries_sent=number, asked_ms=draft.now_ms)
    for consumer in consumers:
        query = StateQuery(
            consumer_id=consumer,
            controller_epoch=draft.state.controller_epoch,
            plan_number=draft.state.plan_number,
            query_number=number,
        )
        draft.do(Send(query))


def deleted(draft: StepDraft, given: ConsumerDeleted) -> None:
    draft.departing.drop(given.consumer)


def message_read(draft: StepDraft, given: ConsumerMessageRead) -> None:
    """Take answers to this controller's queries; ignore everything else that consumers say.

    A consumer that reports and is not in the list is queried too.
    """
    message = given.message
    if message.sender not in draft.consumers and message.sender not in draft.departing:
        _expect(draft, message.sender, 0)
        _ask(draft, [message.sender])
    record = draft.consumers.get(message.sender)
    if record is not None and message.incarnation >= (draft.floor.get(message.sender) or 0):
        heard = changed(
            record, heard_ms=draft.now_ms, heard_heartbeat_time_ms=draft.heartbeat_time_ms
        )
        draft.consumers.put(message.sender, heard)
    if (
        not isinstance(message, StateQueryResponse)
        or record is None
        or message.query_controller_epoch != draft.state.controller_epoch
        or message.plan_number < draft.state.plan_number
    ):
        draft.count("ignored_while_synchronising")
        return
    former = draft.state.answers.get(message.sender)
    newest = (0, 0) if former is None else (former.incarnation, former.sequence)
    floor = draft.floor.get(message.sender) or 0
    if message.incarnation < floor or (message.incarnation, message.sequence) <= newest:
        draft.count("out_of_order")
        return
    draft.change(answers={**draft.state.answers, message.sender: message})
    _finish_if_all_answered(draft)


def _finish_if_all_answered(draft: StepDraft) -> None:
    if not draft.state.is_listed or any(c not in draft.state.answers for c in draft.consumers):
        return
    if draft.state.is_confirmed:
        _finish(draft)
    elif not draft.state.is_confirming:
        draft.change(is_confirming=True)
        draft.ask_for_list()


def _finish(draft: StepDraft) -> None:
    """Take over the answers. Of two consumers that claim a partition, the higher epoch has it."""
    answers = draft.state.answers
    for consumer in _missing(draft):
        record = draft.consumers[consumer]
        draft.consumers.put(consumer, in_status(draft, record, ConsumerStatus.CREATING))
        if not record.is_starting:
            # The last controller may have ended before it was deployed; if it was, this is nothing.
            draft.do(CreateConsumer(consumer, record.deployment_version))
        draft.save()
    claims: dict[TopicPartition, Holding] = {}
    for consumer in sorted(answers):
        _take_over(draft, answers[consumer], claims)
    for partition, holding in claims.items():
        draft.hold(partition, holding)
    draft.change(answers={})
    if answers:
        draft.decide(
            Code.SYNCHRONISED,
            f"{counted(len(answers), 'consumer')} answered, "
            f"{counted(len(claims), 'partition')} owned",
        )
    else:
        draft.decide(Code.FIRST_START, "no consumer is deployed yet")
    go(draft, Phase.SENTINEL, "all consumers answered, or are fenced")


def _take_over(
    draft: StepDraft,
    answer: StateQueryResponse,
    claims: dict[TopicPartition, Holding],
) -> None:
    consumer = answer.sender
    record = draft.consumers[consumer]
    draft.consumers.put(
        consumer,
        ConsumerRecord(
            ConsumerStatus.READY,
            draft.heartbeat_time_ms,
            incarnation=answer.incarnation,
            sequence=answer.sequence,
            heard_ms=draft.now_ms,
            heard_heartbeat_time_ms=draft.heartbeat_time_ms,
            deployment_version=record.deployment_version,
        ),
    )
    draft.floor.put(consumer, answer.incarnation)
    for row in answer.owned:
        if not was_given_out(draft, row.partition_epoch):
            draft.count("impossible_claim")
            continue
        holding = acknowledged(draft, consumer, row.partition_epoch)
        if row.next_offset is None:  # its ledger is not read yet, so it will still be acknowledged
            holding = replace(holding, status=HoldingStatus.STARTING, is_acknowledged=False)
        other = claims.get(row.topic_partition)
        loser = holding
        if other is None or other.epoch < holding.epoch:
            claims[row.topic_partition] = holding
            loser = holding if other is None else other
        if other is not None:
            draft.count("stray_reader")
            draft.decide(
                Code.STRAY_READER,
                f"two consumers read {row.topic_partition}: consumer {loser.consumer} has the "
                "lower epoch and is stopped",
            )
            draft.send_stop(loser.consumer, loser.incarnation, row.topic_partition, loser.epoch)
