"""The controller: `step(state, given) -> (state, effects)`. Everything else here is a detail.

One door for every input: the clock, then the epoch, then who speaks and in which life; only then a
state sees it. The table below says which handler takes which input in which state. What is not in
it raises. Invariants are checked after every step, in production too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.controller.core import (
    group_management,
    holdings,
    housekeeping,
    membership,
    reassignment,
    requests,
    sentinel,
    synchronisation,
)
from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Effect, StepDown
from penstock.controller.core.inputs import (
    ConsumerDeleted,
    ConsumerIncident,
    ConsumerSpoke,
    CreationFailed,
    DeploymentsListed,
    Input,
    LeadershipLost,
    Packed,
    PackingFailed,
    Requested,
    SpeedsMeasured,
    Tick,
)
from penstock.controller.core.invariants import check_step
from penstock.controller.core.settings import ControllerSettings
from penstock.controller.core.state import ConsumerStatus, Phase, State
from penstock.controller.core.step_draft import Turn
from penstock.controller.core.transitions import go


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine. It keeps nothing: all that changes is in the state."""

    def begin(
        self,
        *,
        controller_epoch: int,
        settings: ControllerSettings,
        now_ms: int,
        saved: State | None = None,
    ) -> tuple[State, tuple[Effect, ...]]:
        """A new life of a controller. It always synchronises, whatever was saved.

        Of the saved state it keeps what consumers cannot tell: settings that were changed, pauses,
        a roll-out, the history, numbers that only rise; and whom to ask. The epoch must be new.
        """
        if saved is not None and controller_epoch <= saved.controller_epoch:
            raise ValueError(
                f"epoch {controller_epoch} is not above the saved {saved.controller_epoch}"
            )
        state = State(
            phase=Phase.SYNCHRONIZE,
            controller_epoch=controller_epoch,
            plan_number=0,
            settings=settings,
            now_ms=now_ms,
            phase_since_ms=now_ms,
            ticked_ms=now_ms,
        )
        if saved is not None:
            state = replace(
                state,
                settings=settings.with_overrides(saved.overrides),
                overrides=saved.overrides,
                plan_number=saved.plan_number,
                queries_sent=saved.queries_sent,
                incarnation_floor=saved.incarnation_floor,
                pauses=saved.pauses,
                roll_out=saved.roll_out,
                requests=saved.requests,
                consumers=saved.consumers,
                deployment_version=saved.deployment_version,
                departing={
                    c: replace(d, since_ms=now_ms, sent_ms=now_ms)
                    for c, d in saved.departing.items()
                },
                history=saved.history,
                counts=saved.counts,
            )
        turn = Turn(state, now_ms)
        synchronisation.enter(turn)
        return self._finished(turn)

    def step(self, state: State, given: Input) -> tuple[State, tuple[Effect, ...]]:
        """One input, one new state, and what is to be done."""
        turn = Turn(state, given.now_ms)
        if isinstance(given, Tick):
            turn.change(ticked_ms=turn.now_ms)
        if state.phase is Phase.SUPERSEDED:
            turn.count("input_after_the_end")
        elif isinstance(given, LeadershipLost) or _is_from_the_future(state, given):
            supersede(turn)
        else:
            HANDLERS[state.phase, type(given)](turn, given)
            _react(turn)
        return self._finished(turn)

    def _finished(self, turn: Turn) -> tuple[State, tuple[Effect, ...]]:
        settings = turn.state.settings
        is_calm = turn.state.phase is Phase.SENTINEL and not turn.in_flight
        wait_ms = settings.tick_idle_ms if is_calm else settings.tick_busy_ms
        # Counted from the last tick, not from now: a busy mailbox must not put the clock off.
        after, effects = turn.finish(max(turn.now_ms, turn.state.ticked_ms + wait_ms))
        check_step(turn.before, after, effects, turn.holdings.touched, turn.released)
        return after, effects


def _is_from_the_future(state: State, given: Input) -> bool:
    """Whether a consumer has obeyed a newer controller than this one."""
    return (
        isinstance(given, ConsumerSpoke) and given.message.controller_epoch > state.controller_epoch
    )


def _react(turn: Turn) -> None:
    """What any input may have caused: a plan that lost a consumer is overtaken at once."""
    if (
        turn.has_lost_a_target
        and turn.state.phase is Phase.GROUP_MANAGEMENT
        and group_management.has_lost_a_target(turn)
    ):
        overtake(turn, Code.CONSUMER_LOST, "a consumer that the plan counted on is lost")


def supersede(turn: Turn) -> None:
    words = "a newer controller leads; this one steps down"
    turn.decide(Code.SUPERSEDED, words)
    turn.effects.clear()
    turn.do(StepDown(words))
    go(turn, Phase.SUPERSEDED, "a newer controller leads")


def overtake(turn: Turn, code: Code, words: str) -> None:
    turn.decide(Code.PLAN_OVERTAKEN, f"plan {turn.state.plan_number} is overtaken: {words}")
    go(turn, Phase.REASSIGN, "the plan is overtaken")
    reassignment.enter(turn, code, words, is_urgent=True)


def resynchronise(turn: Turn) -> None:
    turn.decide(Code.OUT_OF_STEP, "a consumer knows more than we do: we ask them all")
    go(turn, Phase.SYNCHRONIZE, "out of step")
    synchronisation.enter(turn)


# Handlers, for what more than one room has a hand in.


def _tick_watching(turn: Turn, given: Tick) -> None:
    housekeeping.tidy(turn, given)
    sentinel.watch(turn)


def _tick_reassigning(turn: Turn, given: Tick) -> None:
    housekeeping.tidy(turn, given)
    reassignment.tick(turn)


def _tick_managing(turn: Turn, given: Tick) -> None:
    housekeeping.tidy(turn, given)
    if group_management.has_lost_a_target(turn):
        turn.has_lost_a_target = True  # `_react` sees to it
        return
    plan = turn.state.plan
    if (
        plan is not None
        and turn.now_ms - plan.made_ms >= turn.state.settings.supersede_after_ms
        and (verdict := sentinel.judge(turn)) is not None
        and verdict.code is Code.OVER_CAPACITY
    ):
        overtake(turn, verdict.code, verdict.words)
        return
    group_management.advance(turn, turn.open)


def _spoke(turn: Turn, given: ConsumerSpoke) -> None:
    message = given.message
    if not membership.admit(turn, message):
        return
    touched, is_out_of_step = holdings.heard(turn, message)
    if is_out_of_step:
        resynchronise(turn)
    elif turn.state.phase is Phase.GROUP_MANAGEMENT:
        former = turn.before.consumers.get(message.sender)
        was_ready = former is not None and former.status is ConsumerStatus.READY
        has_come_up = turn.is_ready(message.sender) and not was_ready
        group_management.advance(turn, turn.open if has_come_up else touched | turn.released)


def _measured_managing(turn: Turn, given: SpeedsMeasured) -> None:
    housekeeping.measure(turn, given)
    group_management.advance(turn, ())


def _late_packing(turn: Turn, _: Packed | PackingFailed) -> None:
    turn.count("late_packing")


def _late_creation_failure(turn: Turn, _: CreationFailed) -> None:
    turn.count("late_creation_failure")


# Each handler takes the input type of its key: that is what the table says.
Handler = Callable[[Turn, Any], None]

_WATCHING: dict[type[Input], Handler] = {
    Tick: _tick_watching,
    DeploymentsListed: membership.compare_with_list,
    CreationFailed: membership.creation_failed,
    ConsumerIncident: membership.incident,
    ConsumerDeleted: membership.deleted,
    ConsumerSpoke: _spoke,
    SpeedsMeasured: housekeeping.measure,
    Packed: _late_packing,
    PackingFailed: _late_packing,
    Requested: requests.obey,
}
_BY_PHASE: dict[Phase, dict[type[Input], Handler]] = {
    Phase.SYNCHRONIZE: {
        Tick: synchronisation.tick,
        DeploymentsListed: synchronisation.listed,
        CreationFailed: _late_creation_failure,
        ConsumerIncident: membership.incident,
        ConsumerDeleted: synchronisation.deleted,
        ConsumerSpoke: synchronisation.spoke,
        SpeedsMeasured: housekeeping.measure,
        Packed: _late_packing,
        PackingFailed: _late_packing,
        Requested: requests.obey,
    },
    Phase.SENTINEL: _WATCHING,
    Phase.REASSIGN: _WATCHING
    | {
        Tick: _tick_reassigning,
        Packed: reassignment.packed,
        PackingFailed: reassignment.failed,
    },
    Phase.GROUP_MANAGEMENT: _WATCHING | {Tick: _tick_managing, SpeedsMeasured: _measured_managing},
}
HANDLERS: Mapping[tuple[Phase, type[Input]], Handler] = {
    (phase, kind): handler
    for phase, handlers in _BY_PHASE.items()
    for kind, handler in handlers.items()
}
