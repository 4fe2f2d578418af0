"""Run scenarios and judge them: green, void or red.

A run is red when anything was violated, or when the group did not converge, drain or stay calm
within its bound. It is void when too little happened to prove anything. The trace hash is the same
for the same seed, on any machine (S12).
"""

import hashlib
from dataclasses import dataclass, field

from penstock.controller.core.invariants import InvariantError
from penstock.controller.core.state import Phase
from penstock.controller.core.transitions import TransitionError
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.laboratory.protocol_simulation.faults import inject
from penstock.laboratory.protocol_simulation.ledger import Ledger
from penstock.laboratory.protocol_simulation.scenario import Scenario
from penstock.laboratory.protocol_simulation.simulated_controller import SimulatedController
from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup
from penstock.laboratory.protocol_simulation.virtual_clock import TooManyEventsError

CONVERGE_MS_MAX = 60_000
DRAIN_MS_MAX = 60_000
CALM_MS = 9_000
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

    @property
    def is_green(self) -> bool:
        return self.verdict == "green"


def run(scenario: Scenario, *, ledger: Ledger | None = None) -> SeedResult:
    """One group from its beginning until it has drained."""
    group: SimulatedGroup | None = None
    try:
        group = SimulatedGroup(scenario, ledger=ledger)
        for fault in scenario.faults:
            group.clock.at(fault.at_ms, lambda f=fault, w=group: inject(w, f))  # type: ignore[misc]  # mypy cannot type a lambda's defaults
        group.run_until(scenario.faults_ms)
        faults = _faults(group)
        group.stop_faults()
        converged_ms, acting, starts = _until_converged(group)
        _stays_calm(group)
        _drains(group)
    except (ViolationError, InvariantError, TransitionError, TooManyEventsError) as error:
        at_ms = 0 if group is None else group.clock.now_ms
        return SeedResult(scenario.seed, "red", f"at {at_ms} ms: {type(error).__name__}: {error}")
    commits = len(group.ledger.commits)
    happened = sum(faults.values())
    verdict, explanation = "green", "converged, drained and calm"
    if happened < FAULTS_MIN or commits < STARTS_MIN:
        verdict, explanation = "void", f"only {happened} faults and {commits} commits"
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
    )


def _faults(group: SimulatedGroup) -> dict[str, int]:
    message_faults = {"lost": group.topic.lost, "doubled": group.topic.doubled}
    message_faults["delayed"] = group.topic.delayed
    return dict(group.happened) | {
        name: number for name, number in message_faults.items() if number
    }


def _until_converged(group: SimulatedGroup) -> tuple[int, int, int]:
    """L1, L4, L5: within both bounds, and without help from outside.

    The bound in steps counts those that did something new. A consumer that is made on the way, to
    grow or to take a dead one's place, counts as one of the group's.
    """
    since_ms, leader = group.clock.now_ms, group.leader
    before = _work_done(leader)
    while (reason := group.checker.why_not_converged()) is not None:
        if group.clock.now_ms - since_ms > CONVERGE_MS_MAX:
            raise ViolationError("L1", f"not converged after {CONVERGE_MS_MAX} ms: {reason}")
        group.run_until(group.clock.now_ms + LOOK_MS)
    if group.leader is not leader:
        leader, before = group.leader, (0, 0, 0)
    acting, starts, made = (
        now - then for now, then in zip(_work_done(leader), before, strict=True)
    )
    consumers = made + (0 if leader is None else len(leader.state.consumers))
    if acting > (most := 2 * starts + consumers + 10):
        raise ViolationError("L1", f"converged in {acting} steps, {most} would do")
    return group.clock.now_ms - since_ms, acting, starts


def _work_done(leader: SimulatedController | None) -> tuple[int, int, int]:
    if leader is None:
        return 0, 0, 0
    return leader.acting_steps, leader.state.epochs_used, leader.consumers_made


def _stays_calm(group: SimulatedGroup) -> None:
    """L3: with constant speeds the group settles, and then no plan is made any more.

    Fewer consumers may do, or a backlog may need free capacity: those plans come first.
    """
    quiet_since, plans = group.clock.now_ms, _plans(group)
    begun = group.clock.now_ms
    while group.clock.now_ms - quiet_since < CALM_MS:
        group.run_until(group.clock.now_ms + LOOK_MS)
        if _plans(group) != plans:
            quiet_since, plans = group.clock.now_ms, _plans(group)
        if group.clock.now_ms - begun > 2 * CONVERGE_MS_MAX:
            raise ViolationError("L3", "the group does not come to rest")


def _plans(group: SimulatedGroup) -> int:
    leader = group.leader
    if leader is None or leader.state.phase is Phase.SYNCHRONIZE:
        raise ViolationError("L3", "the controller was lost without a fault")
    return leader.state.plan_number


def _drains(group: SimulatedGroup) -> None:
    """L2 and S1: once nothing is written any more, every record is in the lake."""
    now = group.clock.now_ms
    for log in group.logs.values():
        log.set_speed(now, 0.0)
    group.monitor_silent_until_ms = now + 10 * DRAIN_MS_MAX
    while (reason := group.checker.why_not_drained()) is not None:
        if group.clock.now_ms - now > DRAIN_MS_MAX:
            raise ViolationError("L2", f"not drained after {DRAIN_MS_MAX} ms: {reason}")
        group.run_until(group.clock.now_ms + LOOK_MS)


def _trace(group: SimulatedGroup) -> str:
    digest = hashlib.sha256()
    for commit in group.ledger.commits:
        digest.update(repr(commit).encode())
    for controller in group.controllers:
        for decision in controller.state.history:
            digest.update(repr(decision).encode())
    return digest.hexdigest()[:16]
