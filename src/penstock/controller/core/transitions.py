"""The table of transitions: which state may follow which, and why.

Any other transition raises. The picture in docs/development/protocol.md is drawn from the table.
"""

from dataclasses import dataclass

from penstock.controller.core.state import Phase
from penstock.controller.core.step_draft import StepDraft


class TransitionError(Exception):
    """The controller tried a transition that is not in the table: a bug of ours."""


@dataclass(frozen=True, slots=True)
class Transition:
    origin: Phase
    destination: Phase
    why: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition(Phase.SYNCHRONIZE, Phase.SENTINEL, "all consumers answered, or are fenced"),
    Transition(Phase.SENTINEL, Phase.REASSIGN, "a reassignment is due"),
    Transition(Phase.REASSIGN, Phase.GROUP_MANAGEMENT, "a plan is made"),
    Transition(Phase.REASSIGN, Phase.SENTINEL, "no better plan"),
    Transition(Phase.GROUP_MANAGEMENT, Phase.SENTINEL, "every partition is in its final state"),
    Transition(Phase.GROUP_MANAGEMENT, Phase.SENTINEL, "the reason for the plan is gone"),
    Transition(Phase.GROUP_MANAGEMENT, Phase.REASSIGN, "the plan is overtaken"),
    Transition(Phase.REASSIGN, Phase.GROUP_MANAGEMENT, "no better plan than the present one"),
    Transition(Phase.GROUP_MANAGEMENT, Phase.SYNCHRONIZE, "out of step"),
    Transition(Phase.SENTINEL, Phase.SYNCHRONIZE, "out of step"),
    Transition(Phase.REASSIGN, Phase.SYNCHRONIZE, "out of step"),
    Transition(Phase.SYNCHRONIZE, Phase.SUPERSEDED, "a newer controller leads"),
    Transition(Phase.SENTINEL, Phase.SUPERSEDED, "a newer controller leads"),
    Transition(Phase.REASSIGN, Phase.SUPERSEDED, "a newer controller leads"),
    Transition(Phase.GROUP_MANAGEMENT, Phase.SUPERSEDED, "a newer controller leads"),
)
_ALLOWED = frozenset((t.origin, t.destination, t.why) for t in TRANSITIONS)


def go(draft: StepDraft, destination: Phase, why: str) -> None:
    """Change the phase, if the table has that transition."""
    origin = draft.state.phase
    if (origin, destination, why) not in _ALLOWED:
        raise TransitionError(f"no transition from {origin} to {destination} because {why}")
    draft.change(phase=destination, phase_since_ms=draft.now_ms)


def drawn() -> str:
    """The table as a state diagram in Mermaid's language."""
    names = {phase: phase.value.replace(" ", "") for phase in Phase}
    lines = ["stateDiagram-v2", f"    [*] --> {names[Phase.SYNCHRONIZE]}: start, or restart"]
    lines += [f'    state "{phase.value}" as {names[phase]}' for phase in Phase]
    lines += [f"    {names[t.origin]} --> {names[t.destination]}: {t.why}" for t in TRANSITIONS]
    lines.append(f"    {names[Phase.SUPERSEDED]} --> [*]: the process ends")
    return "\n".join(lines) + "\n"
