"""Synchronize: learn what every consumer owns, before anything is decided.

List the deployments, ask each consumer for its state, take nothing but answers, and go on when all
have answered. The notes would wait for ever for a dead one; here the wait is bounded, and whoever
is silent is fenced (H4). When nothing is deployed this is the first start, and there is nothing to
learn.
"""

from penstock.controller.decisions import Code
from penstock.controller.effects import Send
from penstock.controller.inputs import ConsumerDeleted, ConsumerSpoke, DeploymentsListed, Tick
from penstock.controller.membership import fence
from penstock.controller.state import (
    ConsumerRecord,
    ConsumerStatus,
    Holding,
    HoldingStatus,
    Phase,
)
from penstock.controller.transitions import go
from penstock.controller.turn import Turn
from penstock.messages import StateQuery, StateQueryResponse
from penstock.model import TopicPartition


def enter(turn: Turn) -> None:
    """Forget what was believed about consumers and partitions, and ask."""
    for partition in sorted(turn.holdings):
        turn.release(partition)
    for consumer in sorted(turn.consumers):
        turn.consumers.drop(consumer)
    turn.forget_open()
    turn.change(
        plan=None,
        plan_number=turn.state.plan_number + 1,
        is_listed=False,
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
        _ask(turn)


def listed(turn: Turn, given: DeploymentsListed) -> None:
    """The deployments that are up with our label: send each a query."""
    if turn.state.is_listed:
        return
    turn.change(is_listed=True, listed_ms=turn.now_ms)
    for consumer in sorted(turn.departing):
        if consumer not in given.consumers:
            turn.departing.drop(consumer)
    for consumer, deployed in sorted(given.consumers.items()):
        if consumer not in turn.departing:
            record = ConsumerRecord(
                ConsumerStatus.QUERIED, turn.now_ms, deployment_version=deployed.version
            )
            turn.consumers.put(consumer, record)
    _ask(turn)
    _finish_if_all_answered(turn)


def _ask(turn: Turn) -> None:
    silent = [c for c in sorted(turn.consumers) if c not in turn.state.answers]
    number = turn.state.queries_sent + 1
    turn.change(queries_sent=number, asked_ms=turn.now_ms)
    for consumer in silent:
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
    """Take answers to our own queries; ignore everything else on partition 0."""
    message = given.message
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
    if all(consumer in turn.state.answers for consumer in turn.consumers):
        _finish(turn)


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
        holding = Holding(
            consumer,
            answer.incarnation,
            row.partition_epoch,
            HoldingStatus.OWNED,
            turn.now_ms,
            turn.now_ms,
        )
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
