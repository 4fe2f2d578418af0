"""Operators' requests: pause, resume, change settings, update deployments. Each is answered.

A request that was seen before (the topic is read again after a restart) is not obeyed twice.
"""

from penstock.controller.core import roll_out
from penstock.controller.core.inputs import Requested
from penstock.controller.core.policy import try_again
from penstock.controller.core.roll_out import answer
from penstock.controller.core.settings import overrides_of
from penstock.controller.core.state import PauseRecord
from penstock.controller.core.step_draft import Turn
from penstock.messages import (
    ChangeSettings,
    Direction,
    Pause,
    Resume,
    ServiceOutcome,
    UpdateDeployments,
)

REQUESTS_REMEMBERED_MAX = 200
PAUSES_MAX = 20


def obey(turn: Turn, given: Requested) -> None:
    request = given.request
    if request.request_id in turn.state.requests:
        turn.count("request_seen_before")
        return
    seen = (*turn.state.requests, request.request_id)[-REQUESTS_REMEMBERED_MAX:]
    turn.change(requests=seen)
    turn.save()
    if isinstance(request, Pause):
        outcome, words = _pause(turn, request)
    elif isinstance(request, Resume):
        outcome, words = _resume(turn, request)
    elif isinstance(request, ChangeSettings):
        outcome, words = _change(turn, request)
    elif isinstance(request, UpdateDeployments):
        outcome, words = _update(turn, request)
    else:
        outcome, words = ServiceOutcome.REFUSED, "no such request"
    answer(turn, request.request_id, outcome, words, len(turn.consumers))


def _pause(turn: Turn, request: Pause) -> tuple[ServiceOutcome, str]:
    if len(turn.state.pauses) >= PAUSES_MAX:
        return ServiceOutcome.REFUSED, f"there are {PAUSES_MAX} pauses already"
    pause = PauseRecord(
        request.direction, request.until_unix_ms, request.reason, request.request_id
    )
    turn.change(pauses=(*turn.state.pauses, pause))
    return ServiceOutcome.DONE, f"paused: {request.direction.value}"


def _resume(turn: Turn, request: Resume) -> tuple[ServiceOutcome, str]:
    """Resuming one direction leaves the other side of a pause of both."""
    left = []
    for pause in turn.state.pauses:
        if request.direction in {Direction.BOTH, pause.direction}:
            continue
        if pause.direction is Direction.BOTH:
            other = Direction.DOWN if request.direction is Direction.UP else Direction.UP
            kept = PauseRecord(other, pause.until_unix_ms, pause.reason, pause.request_id)
            left.append(kept)
        else:
            left.append(pause)
    turn.change(pauses=tuple(left))
    return ServiceOutcome.DONE, f"resumed: {request.direction.value}"


def _change(turn: Turn, request: ChangeSettings) -> tuple[ServiceOutcome, str]:
    asked = overrides_of(request)
    try:
        settings = turn.state.settings.with_overrides(asked)
    except ValueError as error:
        return ServiceOutcome.REFUSED, str(error)
    overrides = {**turn.state.overrides, **asked}
    trigger = try_again(turn.state.trigger)
    turn.change(settings=settings, overrides=overrides, trigger=trigger)
    return ServiceOutcome.DONE, "settings changed"


def _update(turn: Turn, request: UpdateDeployments) -> tuple[ServiceOutcome, str]:
    if turn.state.roll_out is not None:
        return ServiceOutcome.REFUSED, "another roll-out is in progress"
    roll_out.begin(turn, request)
    return ServiceOutcome.ACCEPTED, f"version {turn.state.deployment_version}, one by one"
