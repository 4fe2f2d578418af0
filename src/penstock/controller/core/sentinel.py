"""Sentinel: watch the group, keep its spares warm, and say when a reassignment is due.

Calm when the load is calm: the policy decides, and constant speeds never move anything. Without a
fresh measurement the last plan is held; only what nobody reads is seen to.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import idle, idle_wanted, remove_the_idle
from penstock.controller.core.load import available, view
from penstock.controller.core.membership import create_what_is_wanted, want
from penstock.controller.core.policy import Verdict, judged
from penstock.controller.core.reassignment import enter as reassign
from penstock.controller.core.roll_out import advance as advance_roll_out
from penstock.controller.core.state import Phase, State
from penstock.controller.core.step_draft import Turn
from penstock.controller.core.transitions import go
from penstock.messages import Direction


def watch(turn: Turn) -> None:
    """One look at the group: at most one thing is begun."""
    verdict = judge(turn)
    if verdict is not None:
        go(turn, Phase.REASSIGN, "a reassignment is due")
        reassign(turn, verdict.code, verdict.words, is_urgent=verdict.is_urgent)
        return
    if advance_roll_out(turn):
        return
    _keep_spares(turn)
    _let_the_idle_go(turn)
    create_what_is_wanted(turn)


def judge(turn: Turn) -> Verdict | None:
    """What the policy says, unless a pause or a fruitless attempt holds it back."""
    if not turn.state.partitions:
        return None
    state = turn.state
    trigger, verdict = judged(state.settings, state.trigger, view(turn), turn.now_ms)
    if verdict is None:
        turn.change(trigger=trigger)
        return None
    if verdict.code is Code.UNREAD_PARTITION:
        # Healing is never paused. It is tried again at once only if something changed since.
        return None if _is_waiting(turn.state, turn.now_ms) else verdict
    direction = Direction.DOWN if verdict.code is Code.FEWER_WOULD_DO else Direction.UP
    if turn.state.is_paused(direction):
        turn.count("held_by_pause")
        return None  # and nothing is remembered: it is looked at again when the pause ends
    turn.change(trigger=trigger)
    return verdict


def _is_waiting(state: State, now_ms: int) -> bool:
    """Whether a plan for unread partitions just failed for want of a consumer."""
    return now_ms < state.creation_blocked_until_ms and not state.consumers


def _keep_spares(turn: Turn) -> None:
    if not turn.state.partitions or turn.state.is_paused(Direction.UP):
        return
    if turn.now_ms < turn.state.creation_blocked_until_ms:
        return
    settings = turn.state.settings
    missing = idle_wanted(turn) - len(idle(turn))
    room = settings.consumers_max - len(available(turn))
    for _ in range(max(0, min(missing, room))):
        want(turn)


def _let_the_idle_go(turn: Turn) -> None:
    """Idle consumers beyond the spares go after a while, not at the first glance."""
    surplus = len(idle(turn)) > idle_wanted(turn)
    if not surplus:
        turn.change(idle_since_ms=None)
    elif turn.state.idle_since_ms is None:
        turn.change(idle_since_ms=turn.now_ms)
    elif turn.now_ms - turn.state.idle_since_ms >= turn.state.settings.idle_grace_ms:
        remove_the_idle(turn)
        turn.change(idle_since_ms=None)
