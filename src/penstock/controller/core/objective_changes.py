"""The objective in a running group: what is measured changes what follows from it.

How full consumers are packed, and how many wait warm, follow from how far loads rise and how long
starts take. Both are known only after a while, so the settings follow rarely, in steps, and each
change is a decision with its reason.
"""

from penstock.controller.core.capacity import capacities_of
from penstock.controller.core.decisions import Code
from penstock.controller.core.settings import controller_settings, with_overrides
from penstock.controller.core.step_draft import StepDraft
from penstock.packing.objective import Measured, derived_options, reaction_s
from penstock.packing.rises import look

# Two looks at what was measured are this far apart.
FOLLOW_EVERY_MS = 600_000
# With fewer starts than these, one slow one would decide.
STARTS_NEEDED = 3


def note_rises(draft: StepDraft) -> None:
    """After a measurement: how far the load of each consumer rose above what it had seen."""
    state = draft.state
    if state.speeds is None:
        return
    usual = capacities_of(state)
    rises = look(
        state.rises,
        state.speeds.bytes_per_s,
        state.speed_memory,
        state.held_by,
        usual.usual_bytes_per_s,
        state.speeds.measured_ms,
        round(reaction_s(state.settings.objective) * 1_000),
        usual.weights,
    )
    if rises is not state.rises:
        draft.change(rises=rises)


def follow(draft: StepDraft) -> None:
    """Every ten minutes: go on with what follows from what was measured until now."""
    state = draft.state
    if state.followed_ms is None:
        draft.change(followed_ms=draft.now_ms)
        return
    if draft.now_ms - state.followed_ms < FOLLOW_EVERY_MS:
        return
    measured = _measured(draft)
    draft.change(followed_ms=draft.now_ms, followed=measured)
    settings = controller_settings(with_overrides(state.chosen, state.overrides, measured))
    if settings != state.settings:
        draft.change(settings=settings)
        draft.decide(Code.OBJECTIVE_FOLLOWED, _explanation(draft, state.followed, measured))


def _measured(draft: StepDraft) -> Measured:
    starts = draft.state.starts_took_ms
    return Measured(
        start_s=max(starts) / 1_000 if len(starts) >= STARTS_NEEDED else None,
        rise=draft.state.rises.not_exceeded(draft.state.settings.objective.rises_covered),
    )


def _explanation(draft: StepDraft, before: Measured, after: Measured) -> str:
    """`packing.target_utilisation is 0.9: ...`, of what differs."""
    objective = draft.state.settings.objective
    former = {one.option: one.value for one in derived_options(objective, before)}
    return "; ".join(
        f"{one.option} is {one.value:g} instead of {former[one.option]:g}: {one.reason}"
        for one in derived_options(objective, after)
        if one.value != former[one.option]
    )
