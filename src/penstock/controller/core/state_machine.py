"""The controller's core: `step(state, given) -> (state, effects)`.

Every input passes the same checks before a state sees it: the clock, then the controller's epoch,
then the sender and its incarnation. The table at the end says which handler takes which input in
which state; what is not in it raises. Invariants are checked after every step, in production too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.controller.core import (
    backlog_trend,
    group_management,
    growth,
    heartbeats,
    holdings,
    housekeeping,
    incarnations,
    leadership,
    membership,
    reassignment,
    requests,
    roll_out,
    sentinel,
    silence,
    synchronisation,
)
from penstock.controller.core.capacity import first_capacities
from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Effect, StepDown
from penstock.controller.core.inputs import (
    ConsumerDeleted,
    ConsumerIncident,
    ConsumerMessageRead,
    CreationFailed,
    DeploymentsListed,
    DeploymentTried,
    HeartbeatReturned,
    Input,
    LeadershipConfirmed,
    LeadershipLost,
    ListingFailed,
    MessageRefused,
    NewSettings,
    Packed,
    PackingFailed,
    Requested,
    SpeedsMeasured,
    Tick,
)
from penstock.controller.core.invariants import check_step
from penstock.controller.core.new_settings import kept_changes
from penstock.controller.core.settings import controller_settings, with_overrides
from penstock.controller.core.start_roll_out import without_untried
from penstock.controller.core.state import ConsumerStatus, Phase, State
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.packing.trigger import Reason
from penstock.settings.sections import Settings


@dataclass(frozen=True, slots=True)
class Machine:
    """The core without a state of its own: all that changes is in `State`.

    How often it wants a tick is no setting: a busy group waits for acknowledgements that come
    within milliseconds, a calm one looks at measurements that come every second.
    """

    tick_busy_ms: int = 100
    tick_idle_ms: int = 500

    def begin(
        self,
        *,
        controller_epoch: int,
        settings: Settings,
        now_ms: int,
        saved: State | None = None,
        due: NewSettings | None = None,
        calibrated: Mapping[str, float] | None = None,
    ) -> tuple[State, tuple[Effect, ...]]:
        """Start a controller. It always synchronises, whatever was saved.

        `due` is what this start deploys, if the consumers are deployed otherwise. `calibrated` is
        what one consumer carries of topics, in bytes a second, as a trial of them has shown.

        From the saved state it takes what consumers cannot report: changed settings, pauses, a
        roll-out, what it learned about capacity, growth and starts, the history, numbers that only
        rise, and which consumers to query. The epoch must be new.
        """
        if saved is not None and controller_epoch <= saved.controller_epoch:
            raise ValueError(
                f"epoch {controller_epoch} is not above the saved {saved.controller_epoch}"
            )
        state = State(
            phase=Phase.SYNCHRONIZE,
            controller_epoch=controller_epoch,
            plan_number=0,
            chosen=settings,
            settings=controller_settings(settings),
            now_ms=now_ms,
            phase_since_ms=now_ms,
            ticked_ms=now_ms,
        )
        dropped: tuple[str, ...] = ()
        if saved is not None:
            kept = kept_changes(settings, saved)
            dropped = kept.dropped
            state = replace(
                state,
                settings=controller_settings(with_overrides(settings, kept.overrides)),
                overrides=kept.overrides,
                override_origins=kept.origins,
                plan_number=saved.plan_number,
                queries_sent=saved.queries_sent,
                incarnation_floor=saved.incarnation_floor,
                pauses=saved.pauses,
                roll_out=saved.roll_out,
                requests=saved.requests,
                bounds_requests=saved.bounds_requests,
                consumers=saved.consumers,
                deployment_version=saved.deployment_version,
                departing=dict.fromkeys(saved.departing, now_ms),
                history=saved.history,
                counts=saved.counts,
                growth_limit=saved.growth_limit,
                capacity_size=saved.capacity_size,
                confirmed_bytes_per_s=saved.confirmed_bytes_per_s,
                capacities=saved.capacities,
                starts_took_ms=saved.starts_took_ms,
                avoided_numbers=saved.avoided_numbers,
                ledger_offsets=saved.ledger_offsets,
            )
        state = without_untried(
            replace(state, capacities=first_capacities(state.capacities, calibrated or {})), due
        )
        draft = StepDraft(state, now_ms)
        for explanation in dropped:
            draft.decide(Code.SETTING_DROPPED, explanation)
        synchronisation.enter(draft)
        return self._finished(draft)

    def step(self, state: State, given: Input) -> tuple[State, tuple[Effect, ...]]:
        """The state after one input, and what the process must do."""
        draft = StepDraft(state, given.now_ms)
        if isinstance(given, Tick):
            draft.change(ticked_ms=draft.now_ms)
            if state.phase is not Phase.SUPERSEDED:
                heartbeats.send_heartbeat(draft)
        if state.phase is Phase.SUPERSEDED:
            draft.count("input_after_the_end")
        elif isinstance(given, LeadershipLost):
            supersede(draft)
        elif isinstance(
            given, ConsumerMessageRead | HeartbeatReturned
        ) and leadership.names_a_higher_epoch(state, given):
            leadership.doubt(draft, given)
        elif isinstance(given, ConsumerMessageRead) and incarnations.is_impossible(state, given):
            incarnations.refuse(draft, given)
        else:
            HANDLERS[state.phase, type(given)](draft, given)
            _react(draft)
        return self._finished(draft)

    def _finished(self, draft: StepDraft) -> tuple[State, tuple[Effect, ...]]:
        is_calm = draft.state.phase is Phase.SENTINEL and not draft.awaits_answers
        wait_ms = self.tick_idle_ms if is_calm else self.tick_busy_ms
        # Counted from the last tick, not from now: many messages must not delay the next tick.
        after, effects = draft.finish(max(draft.now_ms, draft.state.ticked_ms + wait_ms))
        check_step(draft.before, after, effects, draft.holdings.touched, draft.released)
        return after, effects


def _react(draft: StepDraft) -> None:
    """After any input: a plan that lost a consumer is overtaken at once."""
    if (
        draft.has_lost_a_target
        and draft.state.phase is Phase.GROUP_MANAGEMENT
        and group_management.has_lost_a_target(draft)
    ):
        overtake(draft, Code.CONSUMER_LOST, "a consumer that the plan needs is lost")


def supersede(draft: StepDraft) -> None:
    explanation = "a newer controller leads; this one steps down"
    draft.decide(Code.SUPERSEDED, explanation)
    draft.effects.clear()
    draft.do(StepDown(explanation))
    go(draft, Phase.SUPERSEDED, "a newer controller leads")


def overtake(draft: StepDraft, code: Code, explanation: str) -> None:
    draft.decide(Code.PLAN_OVERTAKEN, f"plan {draft.state.plan_number} is overtaken: {explanation}")
    go(draft, Phase.REASSIGN, "the plan is overtaken")
    reassignment.enter(draft, code, explanation)


def resynchronise(draft: StepDraft) -> None:
    draft.decide(
        Code.OUT_OF_STEP, "a consumer refused a start as outdated: all consumers are queried"
    )
    go(draft, Phase.SYNCHRONIZE, "out of step")
    synchronisation.enter(draft)


# Handlers that call more than one module.


def _tick_watching(draft: StepDraft, given: Tick) -> None:
    housekeeping.tidy(draft, given)
    sentinel.watch(draft)


def _tick_reassigning(draft: StepDraft, given: Tick) -> None:
    housekeeping.tidy(draft, given)
    reassignment.tick(draft)


def _tick_managing(draft: StepDraft, given: Tick) -> None:
    housekeeping.tidy(draft, given)
    if group_management.has_lost_a_target(draft):
        draft.has_lost_a_target = True  # handled by `_react`
        return
    plan = draft.state.plan
    if (
        plan is not None
        and draft.now_ms - plan.made_ms >= draft.state.settings.overtake_after_ms
        and (due := sentinel.repack_due(draft)) is not None
        and (
            due.reason is Reason.OVER_CAPACITY
            or (
                due.reason is Reason.UNREAD_PARTITION and group_management.has_unknown_unread(draft)
            )
        )
    ):
        overtake(draft, Code(due.reason.value), due.explanation)
    elif not group_management.drop_without_reason(draft):
        group_management.advance(draft, draft.open)
        group_management.read_meanwhile(draft)


def _message_read(draft: StepDraft, given: ConsumerMessageRead) -> None:
    message = given.message
    if not membership.admit(draft, message):
        return
    touched, is_out_of_step = holdings.apply_message(draft, message)
    if is_out_of_step:
        resynchronise(draft)
    elif draft.state.phase is Phase.GROUP_MANAGEMENT:
        former = draft.before.consumers.get(message.sender)
        was_ready = former is not None and former.status is ConsumerStatus.READY
        has_come_up = draft.is_ready(message.sender) and not was_ready
        group_management.advance(draft, draft.open if has_come_up else touched | draft.released)


def _heartbeat_returned(draft: StepDraft, given: HeartbeatReturned) -> None:
    if heartbeats.count_returned(draft, given):
        growth.note_carried(draft)
        backlog_trend.note_backlog(draft)
        silence.give_up_the_silent(draft)


def _measured_managing(draft: StepDraft, given: SpeedsMeasured) -> None:
    housekeeping.measure(draft, given)
    group_management.advance(draft, ())


def _late_packing(draft: StepDraft, _: Packed | PackingFailed) -> None:
    draft.count("late_packing")


def _late_creation_failure(draft: StepDraft, _: CreationFailed) -> None:
    draft.count("late_creation_failure")


# Each handler takes the input type of its key: that is what the table says.
Handler = Callable[[StepDraft, Any], None]

_WATCHING: dict[type[Input], Handler] = {
    Tick: _tick_watching,
    DeploymentsListed: membership.compare_with_list,
    ListingFailed: membership.listing_failed,
    CreationFailed: membership.creation_failed,
    ConsumerIncident: membership.incident,
    ConsumerDeleted: membership.deleted,
    ConsumerMessageRead: _message_read,
    HeartbeatReturned: _heartbeat_returned,
    SpeedsMeasured: housekeeping.measure,
    Packed: _late_packing,
    PackingFailed: _late_packing,
    Requested: requests.obey,
    DeploymentTried: roll_out.tried,
    LeadershipConfirmed: leadership.confirmed,
    MessageRefused: leadership.refused,
}
_BY_PHASE: dict[Phase, dict[type[Input], Handler]] = {
    Phase.SYNCHRONIZE: {
        Tick: synchronisation.tick,
        DeploymentsListed: synchronisation.listed,
        ListingFailed: membership.listing_failed,
        CreationFailed: _late_creation_failure,
        ConsumerIncident: membership.incident,
        ConsumerDeleted: synchronisation.deleted,
        ConsumerMessageRead: synchronisation.message_read,
        HeartbeatReturned: synchronisation.heartbeat_returned,
        SpeedsMeasured: housekeeping.measure,
        Packed: _late_packing,
        PackingFailed: _late_packing,
        Requested: requests.obey,
        DeploymentTried: roll_out.tried,
        LeadershipConfirmed: leadership.confirmed,
        MessageRefused: leadership.refused,
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
