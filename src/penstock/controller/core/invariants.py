"""What must hold after every step, in production too.

docs/development/invariants.md explains the names.

A violation is a bug of ours. It ends the process before anything is sent; the next controller
synchronises. `check_step` looks at what the step changed and costs little; `check_whole` looks at
everything and is for tests and simulations.
"""

from collections.abc import Collection, Iterable

from penstock.controller.core.decisions import HISTORY_MAX
from penstock.controller.core.effects import (
    CreateConsumer,
    DeleteConsumer,
    Effect,
    RestoreDeploymentTemplate,
    SaveState,
    Send,
    SetDeploymentTemplate,
)
from penstock.controller.core.membership import AVAILABLE
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, State
from penstock.errors import PenstockError
from penstock.messages import (
    PARTITIONS_PER_MESSAGE_MAX,
    StartConsumingCommand,
    StopConsumingCommand,
)
from penstock.model import ConsumerId, Epoch, TopicPartition


class InvariantError(PenstockError):
    """The controller was about to do what it must never do."""

    def __init__(self, name: str, explanation: str) -> None:
        super().__init__(
            f"invariant {name} is broken: {explanation}.",
            remedy="The controller stops before it acts. Please report this with the state file.",
        )
        self.name = name


def _require(holds: bool, name: str, explanation: str) -> None:
    if not holds:
        raise InvariantError(name, explanation)


def check_step(
    before: State,
    after: State,
    effects: Collection[Effect],
    touched: Iterable[TopicPartition],
    released: Collection[TopicPartition],
) -> None:
    """One step from `before` to `after`, which changed the holdings of `touched`.

    `released` are those whose consumer confirmed a stop in this step, or was fenced.
    """
    _numbers_only_rise(before, after)
    _stop_before_start(before, after, touched, released)
    _commands_follow_the_record(after, effects)
    _durable_first(before, after, effects)
    if after.plan is not before.plan:
        _plan_covers_everything(before, after)
    if after.consumers is not before.consumers:
        _group_is_within_its_bounds(before, after)
    for effect in effects:
        if isinstance(effect, DeleteConsumer):
            _require(
                not after.held_by.get(effect.consumer),
                "S8",
                f"consumer {effect.consumer} is deleted and still holds partitions",
            )
    _require(len(after.history) <= HISTORY_MAX, "S11", "the history is too long")


def _numbers_only_rise(before: State, after: State) -> None:
    _require(after.controller_epoch == before.controller_epoch, "S5", "the epoch changed")
    _require(after.plan_number >= before.plan_number, "S5", "the plan number fell")
    _require(after.epochs_used >= before.epochs_used, "S5", "an epoch may be used again")
    _require(after.now_ms >= before.now_ms, "S5", "time ran backwards")


def _stop_before_start(
    before: State,
    after: State,
    touched: Iterable[TopicPartition],
    released: Collection[TopicPartition],
) -> None:
    for partition in touched:
        old, new = before.holdings.get(partition), after.holdings.get(partition)
        if new is None:
            continue
        if new.epoch.controller_epoch == after.controller_epoch:
            _require(
                new.epoch.number <= after.epochs_used, "S5", f"{partition}: an epoch not given out"
            )
        if old is None or new.epoch == old.epoch:
            continue
        _require(new.epoch > old.epoch, "S5", f"{partition}: the epoch fell")
        _require(
            partition in released,
            "S4",
            f"{partition}: started again before its consumer stopped or was fenced",
        )


def _commands_follow_the_record(after: State, effects: Collection[Effect]) -> None:
    """A start or stop is sent only for a partition that the state has as starting or stopping."""
    for effect in effects:
        message = effect.message if isinstance(effect, Send) else None
        if isinstance(message, StartConsumingCommand):
            _is_not_too_long(len(message.partitions))
            for row in message.partitions:
                holding = after.holdings.get(row.topic_partition)
                _require(
                    holding is not None
                    and holding.consumer == message.consumer_id
                    and holding.incarnation == message.incarnation
                    and str(holding.epoch) == row.epoch
                    and holding.status is HoldingStatus.STARTING,
                    "S4",
                    f"{row.topic_partition} is started at {message.consumer_id} "
                    "and the state does not say so",
                )
        elif isinstance(message, StopConsumingCommand):
            _is_not_too_long(len(message.partitions))
            for stop in message.partitions:
                holding = after.holdings.get(stop.topic_partition)
                _require(
                    holding is None
                    or holding.status is HoldingStatus.STOPPING
                    or holding.consumer != message.consumer_id
                    or Epoch.parse(stop.epoch) < holding.epoch,
                    "S4",
                    f"{stop.topic_partition} is stopped and the state does not say so",
                )


def _is_not_too_long(rows: int) -> None:
    _require(rows <= PARTITIONS_PER_MESSAGE_MAX, "S11", "a command is too long")


def _durable_first(before: State, after: State, effects: Collection[Effect]) -> None:
    if not any(isinstance(e, (Send, CreateConsumer, DeleteConsumer)) for e in effects):
        return
    is_changed = (
        after.epochs_used != before.epochs_used
        or after.plan_number != before.plan_number
        or after.departing.keys() - before.departing.keys()
        or any(
            record.status is not ConsumerStatus.QUERIED and consumer not in before.consumers
            for consumer, record in after.consumers.items()
        )
        or after.settings is not before.settings
    )
    if is_changed:
        # The template is part of what is saved, and acts on nothing before.
        templates = (SetDeploymentTemplate, RestoreDeploymentTemplate)
        first = next(one for one in effects if not isinstance(one, templates))
        _require(isinstance(first, SaveState), "S9", "an effect comes before the state is durable")


def _plan_covers_everything(before: State, after: State) -> None:
    plan = after.plan
    if plan is None:
        return
    if before.plan is None or plan.number != before.plan.number:
        _require(
            plan.target.keys() == after.write_speeds.keys(),
            "S6",
            f"plan {plan.number} does not cover exactly the partitions that exist",
        )
        strangers = set(plan.target.values()) - after.consumers.keys()
        _require(not strangers, "S6", f"plan {plan.number} needs unknown {sorted(strangers)}")
    elif plan.target is not before.plan.target:
        # Partitions vanish from a plan; those that appear join the next one.
        _require(
            plan.target.keys() <= after.write_speeds.keys(),
            "S6",
            f"plan {plan.number} has partitions that do not exist",
        )
    _require(plan.open <= plan.target.keys(), "S6", "an open partition is not in the plan")


def _group_is_within_its_bounds(before: State, after: State) -> None:
    wanted = [
        consumer
        for consumer, record in after.consumers.items()
        if record.status is ConsumerStatus.WANTED and consumer not in before.consumers
    ]
    number = sum(record.status in AVAILABLE for record in after.consumers.values())
    _require(
        not wanted or number <= after.settings.consumers_max,
        "S7",
        f"{number} consumers are more than {after.settings.consumers_max}",
    )
    both = after.consumers.keys() & after.departing.keys()
    _require(not both, "S8", f"consumers {sorted(both)} are here and departing")


def check_whole(state: State) -> None:
    """The parts of the state agree with one another. Costs as much as the group is large."""
    held: dict[ConsumerId, set[TopicPartition]] = {}
    in_flight = set()
    for partition, holding in state.holdings.items():
        held.setdefault(holding.consumer, set()).add(partition)
        if holding.status is not HoldingStatus.OWNED:
            in_flight.add(partition)
        record = state.consumers.get(holding.consumer)
        if record is None or record.incarnation != holding.incarnation:
            raise InvariantError(
                "S3", f"{partition} is held by no consumer, or by a former incarnation"
            )
    _require(in_flight == state.in_flight, "S11", "the list of what is in flight is wrong")
    _require(held == state.held_by, "S3", "the index of who holds what is wrong")
    plan = state.plan
    if plan is None:
        return
    for partition, consumer in plan.target.items():
        if partition in plan.open or partition in state.parked:
            continue
        found = state.holdings.get(partition)
        is_settled = found is not None and (found.status is HoldingStatus.OWNED or found.is_overdue)
        if found is None or found.consumer != consumer or not is_settled:
            raise InvariantError("S6", f"{partition} is not where it belongs, and is not open")
