"""The objective in a running group: what is measured changes what follows from it.

How full consumers are packed, and how many wait warm, follow from how far loads rise and how long
starts take. Both are known only after a while, so the settings follow rarely, the utilisation in
steps, and each change is a decision with its reason.
"""

from collections.abc import Mapping

from penstock.controller.core.capacity import capacities_of, strength_of
from penstock.controller.core.decisions import Code
from penstock.controller.core.settings import controller_settings, with_overrides
from penstock.controller.core.step_draft import StepDraft
from penstock.packing.objective import NEARLY_ALL, Measured, Objective, derived_options, reaction_s
from penstock.packing.peaks import Peaks, note
from penstock.packing.rises import Rises, look
from penstock.settings import Settings
from penstock.settings.objective import is_set

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
        {
            consumer: strength_of(state, state.consumers[consumer], usual)
            for consumer in state.held_by
            if consumer in state.consumers
        },
    )
    if rises is not state.rises:
        draft.change(rises=rises)


def note_peaks(draft: StepDraft) -> None:
    """After a measurement: how much is written to each topic."""
    state = draft.state
    if state.speeds is None:
        return
    peaks = note(state.peaks, state.written_by_topic, state.speeds.measured_ms)
    if peaks is not state.peaks:
        draft.change(peaks=peaks)


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
    followed = with_overrides(state.chosen, state.overrides, measured)
    settings = controller_settings(followed)
    if settings != state.settings:
        draft.change(settings=settings)
        explanation = _explanation(draft, followed, state.followed, measured)
        draft.decide(Code.OBJECTIVE_FOLLOWED, explanation)


def _measured(draft: StepDraft) -> Measured:
    state = draft.state
    starts, objective = state.starts_took_ms, state.settings.objective
    start_s = max(starts) / 1_000 if len(starts) >= STARTS_NEEDED else None
    return learned(objective, state.rises, state.peaks, capacities_of(state).weights, start_s)


def learned(
    objective: Objective,
    rises: Rises,
    peaks: Peaks,
    weights: Mapping[str, float],
    start_s: float | None = None,
) -> Measured:
    """What a load has shown; `penstock recommend` learns by the same rule."""
    return Measured(
        start_s=start_s,
        rise=rises.not_exceeded(objective.rises_covered),
        rare_rise=rises.not_exceeded(NEARLY_ALL),
        peak_returns_s=peaks.return_after_s(weights),
    )


def _explanation(draft: StepDraft, settings: Settings, before: Measured, after: Measured) -> str:
    """`packing.target_utilisation is 0.9: ...`, of what differs and nobody has set."""
    objective = draft.state.settings.objective
    former = {one.option: one.value for one in derived_options(objective, before)}
    return "; ".join(
        f"{one.option} is {one.value:g} instead of {former[one.option]:g}: {one.reason}"
        for one in derived_options(objective, after)
        if one.value != former[one.option] and not is_set(settings, one.option)
    )
