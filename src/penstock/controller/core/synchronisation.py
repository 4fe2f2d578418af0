"""Synchronize: learn what every consumer owns, before anything is decided.

List the deployments, ask each consumer for its state, take nothing but answers, and go on when all
have answered. The notes would wait for ever for a dead one; here the wait is bounded, and whoever
is silent is fenced (H4). When nothing is deployed this is the first start, and there is nothing to
learn.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Send
from penstock.controller.core.holdings import acknowledged, was_given_out
from penstock.controller.core.inputs import ConsumerDeleted, ConsumerSpoke, DeploymentsListed, Tick
from penstock.controller.core.membership import fence
from penstock.controller.core.state import (
    ConsumerRecord,
    ConsumerStatus,
    Holding,
    Phase,
)
from penstock.controller.core.step_draft import Turn
from penstock.controller.core.transitions import go
from penstock.messages import StateQuery, StateQueryResponse
from penstock.model import ConsumerId, TopicPartition


def enter(turn: Turn) -> None:
    """Forget what was believed about consumers and partitions, and ask."""
    for partition in sorted(turn.holdings):
        turn.release(partition)
    for consumer in sorted(turn.consumers):
        record = turn.consumers[consumer]
        turn.consumers.drop(consumer)
        if record.status is not ConsumerStatus.WANTED:
            _expect(turn, consumer, record.deployment_version)
    turn.forget_open()
    turn.change(
        plan=None,
        plan_number=turn.state.plan_number + 1,
        is_listed=False,
        is_confirming=False,
        is_confirmed=False,
        answers={},
        idle_since_ms=None,
    )
    turn.ask_for_list()
    turn.save()


def tick(turn: Turn, _: Tick) -> None:
    """Ask again; when the bound is reached, go on without those who are silent."""
    settings = turn.state.settings
    if not turn.state.is_listed:
        if turn.now_ms - turn.state.asked_ms >= settings.query_resend_ms:
            turn.ask_for_list()
        return
    if turn.now_ms - turn.state.listed_ms >= settings.synchronise_ms_max:
        _finish(turn)
    elif turn.now_ms - turn.state.asked_ms >= settings.query_resend_ms:
        _ask(turn, [c for c in sorted(turn.consumers) if c not in turn.state.answers])
        if turn.state.is_confirming:
            turn.ask_for_list()


def listed(turn: Turn, given: DeploymentsListed) -> None:
    """The deployments that are up with our label: send each a query.

    A list may be out of date. So whoever the last life knew is asked too, and before leaving the
    list is looked at once more.
    """
    known = set(turn.consumers)
    for consumer in sorted(turn.departing):
        if consumer not in given.consumers:
            turn.departing.drop(consumer)
    for consumer, deployed in sorted(given.consumers.items()):
        if consumer not in turn.departing and consumer not in known:
            _expect(turn, consumer, deployed.version)
    if not turn.state.is_listed:
        turn.change(is_listed=True, listed_ms=turn.now_ms)
        _ask(turn, sorted(turn.consumers))
    elif turn.state.is_confirming:
        turn.change(is_confirmed=True, is_confirming=False)
        _ask(turn, sorted(set(turn.consumers) - known))
    _finish_if_all_answered(turn)


def _expect(turn: Turn, consumer: ConsumerId, version: int) -> None:
    record = ConsumerRecord(ConsumerStatus.QUERIED, turn.now_ms, deployment_version=version)
    turn.consumers.put(consumer, record)


def _ask(turn: Turn, consumers: list[ConsumerId]) -> None:
    if not consumers:
        return
    number = turn.state.queries_sent + 1
    turn.change(queries_sent=number, asked_ms=turn.now_ms)
    for consumer in consumers:
        query = StateQuery(
            consumer_id=consumer,
            controller_epoch=turn.state.controller_epoch,
            plan_number=turn.state.plan_number,
            query_number=number,
        )
        turn.do(Send(query))


def deleted(turn: Turn, given: ConsumerDeleted) -> None:
    turn.departing.drop(given.consumer)


def spoke(turn: Turn, given: ConsumerSpoke) -> None:
    """Take answers to our own queries; ignore everything else on partition 0.

    But for one thing: whoever speaks and is not expected is there, and is asked as well.
    """
    message = given.message
    if message.sender not in turn.consumers and message.sender not in turn.departing:
        _expect(turn, message.sender, 0)
        _ask(turn, [message.sender])
    record = turn.consumers.get(message.sender)
    if (
        not isinstance(message, StateQueryResponse)
        or record is None
        or message.query_controller_epoch != turn.state.controller_epoch
        or message.plan_number < turn.state.plan_number
    ):
        turn.count("ignored_while_synchronising")
        return
    former = turn.state.answers.get(message.sender)
    newest = (0, 0) if former is None else (former.incarnation, former.sequence)
    floor = turn.floor.get(message.sender) or 0
    if message.incarnation < floor or (message.incarnation, message.sequence) <= newest:
        turn.count("out_of_order")
        return
    turn.change(answers={**turn.state.answers, message.sender: message})
    _finish_if_all_answered(turn)


def _finish_if_all_answered(turn: Turn) -> None:
    if not turn.state.is_listed or any(c not in turn.state.answers for c in turn.consumers):
        return
    if turn.state.is_confirmed:
        _finish(turn)
    elif not turn.state.is_confirming:
        turn.change(is_confirming=True)
        turn.ask_for_list()


def _finish(turn: Turn) -> None:
    """Enter the answers into the books. Of two who claim a partition, the higher epoch has it."""
    answers = turn.state.answers
    for consumer in sorted(turn.consumers):
        if consumer not in answers:
            fence(turn, consumer, "did not say what it owns")
    claims: dict[TopicPartition, Holding] = {}
    for consumer in sorted(answers):
        _enter_answer(turn, answers[consumer], claims)
    for partition, holding in claims.items():
        turn.hold(partition, holding)
    turn.change(answers={})
    if answers:
        turn.decide(
            Code.SYNCHRONISED,
            f"{len(answers)} consumers said what they own: {len(claims)} partitions",
        )
    else:
        turn.decide(Code.FIRST_START, "nothing is deployed: this is a first start")
    go(turn, Phase.SENTINEL, "all consumers answered, or are fenced")


def _enter_answer(
    turn: Turn,
    answer: StateQueryResponse,
    claims: dict[TopicPartition, Holding],
) -> None:
    consumer = answer.sender
    record = turn.consumers[consumer]
    turn.consumers.put(
        consumer,
        ConsumerRecord(
            ConsumerStatus.READY,
            turn.now_ms,
            incarnation=answer.incarnation,
            sequence=answer.sequence,
            heard_ms=turn.now_ms,
            deployment_version=record.deployment_version,
        ),
    )
    turn.floor.put(consumer, answer.incarnation)
    for row in answer.owned:
        if not was_given_out(turn, row.partition_epoch):
            turn.count("impossible_claim")
            continue
        holding = acknowledged(turn, consumer, row.partition_epoch)
        other = claims.get(row.topic_partition)
        loser = holding
        if other is None or other.epoch < holding.epoch:
            claims[row.topic_partition] = holding
            loser = holding if other is None else other
        if other is not None:
            turn.count("stray_reader")
            turn.decide(
                Code.STRAY_READER,
                f"consumers {loser.consumer} and another read {row.topic_partition}: "
                f"{loser.consumer} is stopped",
            )
            turn.send_stop(loser.consumer, loser.incarnation, row.topic_partition, loser.epoch)
