"""Sentinel: watch the group, keep its spares warm, and say when a reassignment is due.

Calm when the load is calm: the policy decides, and constant speeds never move anything. Without a
fresh measurement the last plan is held; only what nobody reads is seen to.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import idle, idle_wanted, remove_the_idle
from penstock.controller.core.load import available, view
from penstock.controller.core.membership import create_what_is_wanted, want
from penstock.controller.core.policy import RepackReason, judged
from penstock.controller.core.reassignment import enter as reassign
from penstock.controller.core.roll_out import advance as advance_roll_out
from penstock.controller.core.state import Phase, State
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import Direction


def watch(draft: StepDraft) -> None:
    """One look at the group: at most one thing is begun."""
    verdict = judge(draft)
    if verdict is not None:
        go(draft, Phase.REASSIGN, "a reassignment is due")
        reassign(draft, verdict.code, verdict.explanation, is_urgent=verdict.is_urgent)
        return
    if advance_roll_out(draft):
        return
    _keep_spares(draft)
    _let_the_idle_go(draft)
    create_what_is_wanted(draft)


def judge(draft: StepDraft) -> RepackReason | None:
    """What the policy says, unless a pause or a fruitless attempt holds it back."""
    if not draft.state.write_speeds:
        return None
    state = draft.state
    trigger, verdict = judged(state.settings, state.trigger, view(draft), draft.now_ms)
    if verdict is None:
        draft.change(trigger=trigger)
        return None
    if verdict.code is Code.UNREAD_PARTITION:
        # Healing is never paused. It is tried again at once only if something changed since.
        return None if _is_waiting(draft.state, draft.now_ms) else verdict
    direction = Direction.DOWN if verdict.code is Code.FEWER_WOULD_DO else Direction.UP
    if draft.state.is_paused(direction):
        draft.count("held_by_pause")
        return None  # and nothing is remembered: it is looked at again when the pause ends
    draft.change(trigger=trigger)
    return verdict


def _is_waiting(state: State, now_ms: int) -> bool:
    """Whether a plan for unread partitions just failed for want of a consumer."""
    return now_ms < state.creation_blocked_until_ms and not state.consumers


def _keep_spares(draft: StepDraft) -> None:
    if not draft.state.write_speeds or draft.state.is_paused(Direction.UP):
        return
    if draft.now_ms < draft.state.creation_blocked_until_ms:
        return
    settings = draft.state.settings
    missing = idle_wanted(draft) - len(idle(draft))
    room = settings.consumers_max - len(available(draft))
    for _ in range(max(0, min(missing, room))):
        want(draft)


def _let_the_idle_go(draft: StepDraft) -> None:
    """Idle consumers beyond the spares go after a while, not at the first glance."""
    surplus = len(idle(draft)) > idle_wanted(draft)
    if not surplus:
        draft.change(idle_since_ms=None)
    elif draft.state.idle_since_ms is None:
        draft.change(idle_since_ms=draft.now_ms)
    elif draft.now_ms - draft.state.idle_since_ms >= draft.state.settings.idle_grace_ms:
        remove_the_idle(draft)
        draft.change(idle_since_ms=None)
