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
from penstock.laboratory.protocol_simulation.simulated_controller import ControllerActor
from penstock.laboratory.protocol_simulation.simulated_group import World
from penstock.laboratory.protocol_simulation.virtual_clock import StormError

CONVERGE_MS_MAX = 60_000
DRAIN_MS_MAX = 60_000
CALM_MS = 9_000
LOOK_MS = 500
FAULTS_MIN = 3
STARTS_MIN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    verdict: str
    words: str
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


def run(scenario: Scenario, *, ledger: Ledger | None = None) -> Outcome:
    """One world from its beginning to its rest."""
    world: World | None = None
    try:
        world = World(scenario, ledger=ledger)
        for fault in scenario.faults:
            world.clock.at(fault.at_ms, lambda f=fault, w=world: inject(w, f))  # type: ignore[misc]  # mypy cannot type a lambda's defaults
        world.run_until(scenario.war_ms)
        faults = _faults(world)
        world.make_peace()
        converged_ms, acting, starts = _until_converged(world)
        _stays_calm(world)
        _drains(world)
    except (ViolationError, InvariantError, TransitionError, StormError) as error:
        at_ms = 0 if world is None else world.clock.now_ms
        return Outcome(scenario.seed, "red", f"at {at_ms} ms: {type(error).__name__}: {error}")
    commits = len(world.ledger.commits)
    happened = sum(faults.values())
    verdict, words = "green", "converged, drained and calm"
    if happened < FAULTS_MIN or commits < STARTS_MIN:
        verdict, words = "void", f"only {happened} faults and {commits} commits"
    return Outcome(
        scenario.seed,
        verdict,
        words,
        faults,
        converged_ms,
        acting,
        starts,
        world.checker.records,
        world.clock.events,
        _trace(world),
    )


def _faults(world: World) -> dict[str, int]:
    weather = {"lost": world.topic.lost, "doubled": world.topic.doubled}
    weather["delayed"] = world.topic.delayed
    return dict(world.happened) | {name: number for name, number in weather.items() if number}


def _until_converged(world: World) -> tuple[int, int, int]:
    """L1, L4, L5: within both bounds, and without a hand from outside.

    The bound in steps counts those that did something new. A consumer that is made on the way, to
    grow or to take a dead one's place, counts as one of the group's.
    """
    peace_ms, leader = world.clock.now_ms, world.leader
    before = _work_done(leader)
    while (reason := world.checker.why_not_converged()) is not None:
        if world.clock.now_ms - peace_ms > CONVERGE_MS_MAX:
            raise ViolationError("L1", f"not converged after {CONVERGE_MS_MAX} ms: {reason}")
        world.run_until(world.clock.now_ms + LOOK_MS)
    if world.leader is not leader:
        leader, before = world.leader, (0, 0, 0)
    acting, starts, made = (
        now - then for now, then in zip(_work_done(leader), before, strict=True)
    )
    consumers = made + (0 if leader is None else len(leader.state.consumers))
    if acting > (most := 2 * starts + consumers + 10):
        raise ViolationError("L1", f"converged in {acting} steps, {most} would do")
    return world.clock.now_ms - peace_ms, acting, starts


def _work_done(leader: ControllerActor | None) -> tuple[int, int, int]:
    if leader is None:
        return 0, 0, 0
    return leader.acting_steps, leader.state.epochs_used, leader.consumers_made


def _stays_calm(world: World) -> None:
    """L3: with constant speeds the group settles, and then no plan is made any more.

    Fewer consumers may still do, or a backlog may still need room: those plans come first.
    """
    quiet_since, plans = world.clock.now_ms, _plans(world)
    begun = world.clock.now_ms
    while world.clock.now_ms - quiet_since < CALM_MS:
        world.run_until(world.clock.now_ms + LOOK_MS)
        if _plans(world) != plans:
            quiet_since, plans = world.clock.now_ms, _plans(world)
        if world.clock.now_ms - begun > 2 * CONVERGE_MS_MAX:
            raise ViolationError("L3", "the group does not come to rest")


def _plans(world: World) -> int:
    leader = world.leader
    if leader is None or leader.state.phase is Phase.SYNCHRONIZE:
        raise ViolationError("L3", "the controller was lost at peace")
    return leader.state.plan_number


def _drains(world: World) -> None:
    """L2 and S1: once nothing is written any more, every record is in the lake."""
    now = world.clock.now_ms
    for log in world.logs.values():
        log.set_speed(now, 0.0)
    world.monitor_silent_until_ms = now + 10 * DRAIN_MS_MAX
    while (reason := world.checker.why_not_drained()) is not None:
        if world.clock.now_ms - now > DRAIN_MS_MAX:
            raise ViolationError("L2", f"not drained after {DRAIN_MS_MAX} ms: {reason}")
        world.run_until(world.clock.now_ms + LOOK_MS)


def _trace(world: World) -> str:
    digest = hashlib.sha256()
    for commit in world.ledger.commits:
        digest.update(repr(commit).encode())
    for controller in world.controllers:
        for decision in controller.state.history:
            digest.update(repr(decision).encode())
    return digest.hexdigest()[:16]
