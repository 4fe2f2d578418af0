"""The working copy of the state for one step.

Handlers read and change it; nothing outside the core sees it. It keeps the parts of the state that
depend on one another in agreement (who holds what, what is in flight, what is open in the plan),
and gathers commands so that each consumer gets few messages, none too long.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from penstock.controller.core.decisions import Code, Decision, remembered
from penstock.controller.core.effects import (
    Effect,
    ListDeployments,
    RestoreDeploymentTemplate,
    SaveState,
    Send,
    SetDeploymentTemplate,
    WaitUntil,
)
from penstock.controller.core.state import (
    ConsumerRecord,
    ConsumerStatus,
    Holding,
    HoldingStatus,
    Phase,
    State,
    by_name,
)
from penstock.messages import (
    PartitionToStart,
    PartitionToStop,
    StartConsumingCommand,
    StopConsumingCommand,
    cut,
)
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.model.changed import changed

Key = TypeVar("Key")
Held = TypeVar("Held")


class DraftMapping(Generic[Key, Held]):
    """A mapping that is copied at the first change, and remembers what changed."""

    __slots__ = ("_given", "_own", "touched")

    def __init__(self, given: Mapping[Key, Held]) -> None:
        self._given = given
        self._own: dict[Key, Held] | None = None
        self.touched: set[Key] = set()

    @property
    def now(self) -> Mapping[Key, Held]:
        return self._given if self._own is None else self._own

    def get(self, key: Key) -> Held | None:
        return self.now.get(key)

    def __getitem__(self, key: Key) -> Held:
        return self.now[key]

    def __contains__(self, key: Key) -> bool:
        return key in self.now

    def __iter__(self) -> Iterator[Key]:
        return iter(self.now)

    def __len__(self) -> int:
        return len(self.now)

    def put(self, key: Key, held: Held) -> None:
        if self._own is None:
            self._own = dict(self._given)
        self._own[key] = held
        self.touched.add(key)

    def drop(self, key: Key) -> None:
        if key in self.now:
            if self._own is None:
                self._own = dict(self._given)
            del self._own[key]
            self.touched.add(key)


class StepDraft:
    """The working copy. `state` holds what is not drafted; `change` replaces parts of it."""

    def __init__(self, state: State, now_ms: int) -> None:
        # A clock that runs backwards stands still here, so that no wait gets longer.
        self.now_ms = max(now_ms, state.now_ms)
        self.before = state
        self.state = state
        self.consumers: DraftMapping[ConsumerId, ConsumerRecord] = DraftMapping(state.consumers)
        self.departing = DraftMapping(state.departing)
        self.floor = DraftMapping(state.incarnation_floor)
        self.holdings: DraftMapping[TopicPartition, Holding] = DraftMapping(state.holdings)
        self.parked = DraftMapping(state.parked)
        self.ledger_offsets = DraftMapping(state.ledger_offsets)
        self.effects: list[Effect] = []
        self.decisions: list[Decision] = []
        self.has_lost_a_target = False
        self._must_save = False
        self.epochs_used = state.epochs_used
        self._counts: dict[str, int] = {}
        self._held: dict[ConsumerId, set[TopicPartition]] = {}
        self._in_flight: set[TopicPartition] | None = None
        self._open: set[TopicPartition] | None = None
        self._starts: dict[ConsumerId, dict[TopicPartition, Epoch]] = {}
        self._stops: dict[tuple[ConsumerId, int], dict[TopicPartition, Epoch]] = {}
        self._asks_for_list = False
        self.released: set[TopicPartition] = set()

    # Small things

    def change(self, **changes: Any) -> None:
        self.state = changed(self.state, **changes)

    def count(self, name: str, by: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + by

    def save(self) -> None:
        """The effects of this step depend on what it changed: save first (S9)."""
        self._must_save = True

    def decide(
        self, code: Code, explanation: str, moves: int = 0, moved_bytes_per_s: float = 0.0
    ) -> None:
        decision = Decision(
            self.now_ms, code, explanation, self.state.plan_number, moves, moved_bytes_per_s
        )
        self.decisions.append(decision)

    def do(self, effect: Effect) -> None:
        self.effects.append(effect)

    def ask_for_list(self) -> None:
        """Ask in this step, or after the wait that follows a failed listing."""
        self._asks_for_list = True

    def _is_list_due(self) -> bool:
        again_ms = self.state.list_again_ms
        return self._asks_for_list if again_ms is None else self.now_ms >= again_ms

    @property
    def heartbeat_time_ms(self) -> int:
        return self.state.heartbeats.heartbeat_time_ms

    def is_ready(self, consumer: ConsumerId | None) -> bool:
        record = None if consumer is None else self.consumers.get(consumer)
        return record is not None and record.status is ConsumerStatus.READY

    # Who holds what

    def held_by(self, consumer: ConsumerId) -> set[TopicPartition] | frozenset[TopicPartition]:
        own = self._held.get(consumer)
        return self.state.held_by.get(consumer, frozenset()) if own is None else own

    def _own_held(self, consumer: ConsumerId) -> set[TopicPartition]:
        if consumer not in self._held:
            self._held[consumer] = set(self.state.held_by.get(consumer, ()))
        return self._held[consumer]

    @property
    def in_flight(self) -> set[TopicPartition] | frozenset[TopicPartition]:
        return self.state.in_flight if self._in_flight is None else self._in_flight

    @property
    def awaits_answers(self) -> bool:
        """Whether commands are not acknowledged; a start that is overdue holds nothing up."""
        return any(not self.holdings[partition].is_overdue for partition in self.in_flight)

    def hold(self, partition: TopicPartition, holding: Holding) -> None:
        self.holdings.put(partition, holding)
        self._own_held(holding.consumer).add(partition)
        if self._in_flight is None:
            self._in_flight = set(self.state.in_flight)
        if holding.status is HoldingStatus.OWNED:
            self._in_flight.discard(partition)
        else:
            self._in_flight.add(partition)

    def release(self, partition: TopicPartition) -> None:
        """No consumer holds it any more: its stop is confirmed, or its consumer is fenced."""
        holding = self.holdings[partition]
        record = self.consumers.get(holding.consumer)
        if record is not None and partition in record.next_offsets:
            self.ledger_offsets.put(partition, record.next_offsets[partition])
        self.holdings.drop(partition)
        self._own_held(holding.consumer).discard(partition)
        if self._in_flight is None:
            self._in_flight = set(self.state.in_flight)
        self._in_flight.discard(partition)
        self.released.add(partition)
        self.reopen(partition)

    # What is open in the plan

    @property
    def open(self) -> set[TopicPartition] | frozenset[TopicPartition]:
        if self._open is not None:
            return self._open
        return frozenset() if self.state.plan is None else self.state.plan.open

    def reopen(self, partition: TopicPartition) -> None:
        plan = self.state.plan
        if plan is not None and partition in plan.target and partition not in self.open:
            self._own_open().add(partition)

    def close(self, partition: TopicPartition) -> None:
        if partition in self.open:
            self._own_open().discard(partition)

    def _own_open(self) -> set[TopicPartition]:
        if self._open is None:
            self._open = set(self.open)
        return self._open

    def forget_open(self) -> None:
        """A new plan has its own open partitions."""
        self._open = None

    # Commands

    def start(self, partition: TopicPartition, consumer: ConsumerId) -> None:
        """Start under a new epoch (S5) a partition that no consumer holds (S4)."""
        self.epochs_used += 1
        epoch = Epoch(self.state.controller_epoch, self.epochs_used)
        incarnation = self.consumers[consumer].incarnation
        self.hold(
            partition,
            Holding(
                consumer,
                incarnation,
                epoch,
                HoldingStatus.STARTING,
                self.heartbeat_time_ms,
                self.now_ms,
            ),
        )
        self._starts.setdefault(consumer, {})[partition] = epoch
        self.save()

    def stop(self, partition: TopicPartition) -> None:
        holding = self.holdings[partition]
        self.hold(
            partition,
            replace(
                holding,
                status=HoldingStatus.STOPPING,
                is_overdue=False,
                since_heartbeat_time_ms=self.heartbeat_time_ms,
                sent_ms=self.now_ms,
            ),
        )
        # A start that this step was about to send is not sent.
        self._starts.get(holding.consumer, {}).pop(partition, None)
        self.send_stop(holding.consumer, holding.incarnation, partition, holding.epoch)

    def send_stop(
        self, consumer: ConsumerId, incarnation: int, partition: TopicPartition, epoch: Epoch
    ) -> None:
        self._stops.setdefault((consumer, incarnation), {})[partition] = epoch

    def resend(self, partition: TopicPartition) -> None:
        holding = self.holdings[partition]
        self.hold(partition, replace(holding, sent_ms=self.now_ms))
        if holding.status is HoldingStatus.STARTING:
            self._starts.setdefault(holding.consumer, {})[partition] = holding.epoch
        else:
            self.send_stop(holding.consumer, holding.incarnation, partition, holding.epoch)

    # The end

    def finish(self, wait_until_ms: int) -> tuple[State, tuple[Effect, ...]]:
        """The new state and its effects. Saving comes before what depends on it."""
        self._flush_commands()
        if self._is_list_due() and self.state.phase is not Phase.SUPERSEDED:
            self.change(asked_ms=self.now_ms, list_again_ms=None)
            self.effects.append(ListDeployments())
        if self._must_save:
            # The template is saved with the state, so it is set before.
            kinds = (SetDeploymentTemplate, RestoreDeploymentTemplate)
            templates = [one for one in self.effects if isinstance(one, kinds)]
            others = [one for one in self.effects if not isinstance(one, kinds)]
            self.effects = [*templates, SaveState(), *others]
        self.effects.append(WaitUntil(wait_until_ms))
        changes = {"now_ms": self.now_ms, **self._frozen()}
        return changed(self.state, **changes), tuple(self.effects)

    def _frozen(self) -> dict[str, Any]:
        """The parts of the state that this step changed."""
        state = self.state
        drafts: dict[str, DraftMapping[Any, Any]] = {
            "consumers": self.consumers,
            "departing": self.departing,
            "incarnation_floor": self.floor,
            "holdings": self.holdings,
            "parked": self.parked,
            "ledger_offsets": self.ledger_offsets,
        }
        changes: dict[str, Any] = {n: draft.now for n, draft in drafts.items() if draft.touched}
        changes["epochs_used"] = self.epochs_used
        if self._held:
            frozen = {consumer: frozenset(held) for consumer, held in self._held.items() if held}
            rest = {c: h for c, h in state.held_by.items() if c not in self._held}
            changes["held_by"] = rest | frozen
        if self._in_flight is not None:
            changes["in_flight"] = frozenset(self._in_flight)
        if self._open is not None and state.plan is not None:
            changes["plan"] = replace(state.plan, open=frozenset(self._open))
        if self._counts:
            names = {*state.counts, *self._counts}
            counts = {n: state.counts.get(n, 0) + self._counts.get(n, 0) for n in sorted(names)}
            changes["counts"] = counts
        if self.decisions:
            changes["history"] = remembered(state.history, self.decisions)
        return changes

    def _flush_commands(self) -> None:
        """Stops before starts, by consumer and by partition, cut to the length of a message."""
        epoch, plan = self.state.controller_epoch, self.state.plan_number
        for (consumer, incarnation), stops in sorted(self._stops.items()):
            rows = [
                PartitionToStop.model_construct(
                    topic=p.topic, partition=p.partition, epoch=str(stops[p])
                )
                for p in sorted(stops, key=by_name)
            ]
            for piece in cut(rows):
                command = StopConsumingCommand.model_construct(
                    consumer_id=consumer,
                    incarnation=incarnation,
                    controller_epoch=epoch,
                    plan_number=plan,
                    partitions=piece,
                )
                self.effects.append(Send(command))
        topic_ids = {} if self.state.speeds is None else self.state.speeds.topic_ids
        for consumer, starts in sorted(self._starts.items()):
            record = self.consumers.get(consumer)
            if record is None or not starts:  # fenced later in this same step
                continue
            start_rows = [
                PartitionToStart.model_construct(
                    topic=p.topic,
                    partition=p.partition,
                    epoch=str(starts[p]),
                    topic_id=topic_ids.get(p.topic),
                )
                for p in sorted(starts, key=by_name)
            ]
            for start_piece in cut(start_rows):
                start_command = StartConsumingCommand.model_construct(
                    consumer_id=consumer,
                    incarnation=record.incarnation,
                    controller_epoch=epoch,
                    plan_number=plan,
                    partitions=start_piece,
                )
                self.effects.append(Send(start_command))
