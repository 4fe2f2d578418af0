"""Runs a scenario and judges it: green, void or red.

A run is red when an invariant was violated, or when the group did not converge, drain or stay
stable within its bound. It is void when too little happened to prove anything. The trace hash is
the same for the same seed on any machine.
"""

import hashlib
from dataclasses import dataclass, field

from penstock.controller.core.invariants import InvariantError
from penstock.controller.core.state import Phase
from penstock.controller.core.transitions import TransitionError
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.laboratory.protocol_simulation.drain_bound import drain_ms_of
from penstock.laboratory.protocol_simulation.faults import ask_for_bad_deployment, inject
from penstock.laboratory.protocol_simulation.lasting_load import endure
from penstock.laboratory.protocol_simulation.ledger import Ledger
from penstock.laboratory.protocol_simulation.scenario import Scenario
from penstock.laboratory.protocol_simulation.simulated_controller import SimulatedController
from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup
from penstock.laboratory.protocol_simulation.size_checks import check_cost, wrong_size
from penstock.laboratory.protocol_simulation.virtual_clock import TooManyEventsError

CONVERGE_MS_MAX = 60_000
DRAIN_MS_MAX = 60_000
STABLE_MS = 9_000
LOOK_MS = 500
FAULTS_MIN = 3
STARTS_MIN = 3


@dataclass(frozen=True, slots=True)
class SeedResult:
    seed: int
    verdict: str
    explanation: str
    faults: dict[str, int] = field(default_factory=dict)
    converged_ms: int = 0
    acting_steps: int = 0
    starts: int = 0
    records: int = 0
    events: int = 0
    trace: str = ""
    # Also those after the faults.
    roll_backs: int = 0

    @property
    def is_green(self) -> bool:
        return self.verdict == "green"


def run(scenario: Scenario, *, ledger: Ledger | None = None) -> SeedResult:
    """Run one simulated group until it is stable and drained."""
    group: SimulatedGroup | None = None
    try:
        group = SimulatedGroup(scenario, ledger=ledger)
        for fault in scenario.faults:
            group.clock.at(fault.at_ms, lambda f=fault, w=group: inject(w, f))  # type: ignore[misc]  # mypy cannot type a lambda's defaults
        if scenario.bad_update_ms:
            group.clock.at(scenario.bad_update_ms, lambda: ask_for_bad_deployment(group))
        group.run_until(scenario.faults_until_ms)
        faults = _faults(group)
        group.end_faults()
        converged_ms, acting, starts = _until_converged(group)
        if not _stays_stable(group):
            converged_ms, acting, starts = _until_converged(group)
            _stays_stable(group)
        _returns_to_its_size(group)
        check_cost(group)
        if scenario.lasting_load is not None:
            endure(group)
            _returns_to_its_size(group)
        _drains(group)
    except (ViolationError, InvariantError, TransitionError, TooManyEventsError) as error:
        at_ms = 0 if group is None else group.clock.now_ms
        return SeedResult(scenario.seed, "red", f"at {at_ms} ms: {type(error).__name__}: {error}")
    commits = len(group.ledger.commits)
    faults_total = sum(faults.values())
    verdict, explanation = "green", "converged, stable and drained"
    if faults_total < FAULTS_MIN or commits < STARTS_MIN:
        verdict, explanation = "void", f"only {faults_total} faults and {commits} commits"
    return SeedResult(
        scenario.seed,
        verdict,
        explanation,
        faults,
        converged_ms,
        acting,
        starts,
        group.checker.records,
        group.clock.events,
        _trace(group),
        group.fault_counts["rolled back"],
    )


def _faults(group: SimulatedGroup) -> dict[str, int]:
    by_topic = {"lost": group.topic.lost, "doubled": group.topic.doubled}
    by_topic["delayed"] = group.topic.delayed
    return dict(group.fault_counts) | {name: number for name, number in by_topic.items() if number}


def _until_converged(group: SimulatedGroup) -> tuple[int, int, int]:
    """The group converges within a time and a number of steps, without help (L1, L4, L5).

    Only steps that did something new count. A consumer that is created meanwhile, to grow or to
    replace a dead one, counts as one of the group's.
    """
    faults_ended_ms, leader = group.clock.now_ms, group.leader
    before = _work_done(leader)
    while (reason := group.checker.why_not_converged()) is not None:
        if group.clock.now_ms - faults_ended_ms > CONVERGE_MS_MAX:
            raise ViolationError("L1", f"not converged after {CONVERGE_MS_MAX} ms: {reason}")
        group.run_until(group.clock.now_ms + LOOK_MS)
    if group.leader is not leader:
        leader, before = group.leader, (0, 0, 0)
    acting, starts, made = (
        now - then for now, then in zip(_work_done(leader), before, strict=True)
    )
    consumers = made + (0 if leader is None else len(leader.state.consumers))
    if acting > (most := 2 * starts + consumers + 10):
        raise ViolationError("L1", f"converged in {acting} steps, expected at most {most}")
    return group.clock.now_ms - faults_ended_ms, acting, starts


def _work_done(leader: SimulatedController | None) -> tuple[int, int, int]:
    if leader is None:
        return 0, 0, 0
    return leader.acting_steps, leader.state.epochs_used, leader.consumers_made


def _stays_stable(group: SimulatedGroup) -> bool:
    """With constant speeds the group settles, and no plan is made any more (L3).

    Before that, plans may still remove a consumer or make capacity for a backlog. False when the
    group had converged under an older controller, which then learned that it is one and ended: the
    next one has to converge as well.
    """
    leader, newest_epoch = group.leader, group.newest_epoch
    is_older = leader is not None and leader.epoch < newest_epoch
    begun = quiet_since = group.clock.now_ms
    plans = _plans(group)
    while group.clock.now_ms - quiet_since < STABLE_MS:
        group.run_until(group.clock.now_ms + LOOK_MS)
        if is_older and group.leader is not leader:
            return False
        if _plans(group) != plans:
            quiet_since, plans = group.clock.now_ms, _plans(group)
        if group.clock.now_ms - begun > 2 * CONVERGE_MS_MAX:
            raise ViolationError("L3", "the group keeps making plans")
    return True


def _returns_to_its_size(group: SimulatedGroup) -> None:
    """The group has what its load needs, at the latest a while after it came to rest (L6, L8).

    A consumer may have shown only now how much it can carry.
    """
    since_ms = group.clock.now_ms
    while (violation := wrong_size(group)) is not None:
        if group.clock.now_ms - since_ms > CONVERGE_MS_MAX:
            raise violation
        group.run_until(group.clock.now_ms + LOOK_MS)


def _plans(group: SimulatedGroup) -> int:
    leader = group.leader
    if leader is None or leader.state.phase is Phase.SYNCHRONIZE:
        raise ViolationError("L3", "the controller was lost after the faults ended")
    return leader.state.plan_number


def _drains(group: SimulatedGroup) -> None:
    """When nothing is written any more, every record reaches the lake once (L2, S1).

    Beside what carrying takes there is time for retries, pauses and moves that are under way.
    """
    now = group.clock.now_ms
    for log in group.logs.values():
        log.set_speed(now, 0.0)
    group.monitor_silent_until_ms = now + 100 * DRAIN_MS_MAX
    most_ms = DRAIN_MS_MAX + drain_ms_of(group)
    while (reason := group.checker.why_not_drained()) is not None:
        if group.clock.now_ms - now > most_ms:
            raise ViolationError("L2", f"not drained after {most_ms} ms: {reason}")
        group.run_until(group.clock.now_ms + LOOK_MS)


def _trace(group: SimulatedGroup) -> str:
    digest = hashlib.sha256()
    for commit in group.ledger.commits:
        digest.update(repr(commit).encode())
    for controller in group.controllers:
        for decision in controller.state.history:
            digest.update(repr(decision).encode())
    return digest.hexdigest()[:16]
