"""Operators' requests: pause, resume, change settings, update deployments. Each is answered.

A request that was seen before (the topic is read again after a restart) is not obeyed twice.
"""

from penstock.controller.core import roll_out
from penstock.controller.core.inputs import Requested
from penstock.controller.core.policy import try_again
from penstock.controller.core.roll_out import answer
from penstock.controller.core.settings import overrides_of
from penstock.controller.core.state import PauseRecord
from penstock.controller.core.step_draft import StepDraft
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


def obey(draft: StepDraft, given: Requested) -> None:
    request = given.request
    if request.request_id in draft.state.requests:
        draft.count("request_seen_before")
        return
    seen = (*draft.state.requests, request.request_id)[-REQUESTS_REMEMBERED_MAX:]
    draft.change(requests=seen)
    draft.save()
    if isinstance(request, Pause):
        outcome, explanation = _pause(draft, request)
    elif isinstance(request, Resume):
        outcome, explanation = _resume(draft, request)
    elif isinstance(request, ChangeSettings):
        outcome, explanation = _change(draft, request)
    elif isinstance(request, UpdateDeployments):
        outcome, explanation = _update(draft, request)
    else:
        outcome, explanation = ServiceOutcome.REFUSED, "no such request"
    answer(draft, request.request_id, outcome, explanation, len(draft.consumers))


def _pause(draft: StepDraft, request: Pause) -> tuple[ServiceOutcome, str]:
    if len(draft.state.pauses) >= PAUSES_MAX:
        return ServiceOutcome.REFUSED, f"there are {PAUSES_MAX} pauses already"
    pause = PauseRecord(
        request.direction, request.until_unix_ms, request.reason, request.request_id
    )
    draft.change(pauses=(*draft.state.pauses, pause))
    return ServiceOutcome.DONE, f"paused: {request.direction.value}"


def _resume(draft: StepDraft, request: Resume) -> tuple[ServiceOutcome, str]:
    """Resuming one direction leaves the other side of a pause of both."""
    left = []
    for pause in draft.state.pauses:
        if request.direction in {Direction.BOTH, pause.direction}:
            continue
        if pause.direction is Direction.BOTH:
            other = Direction.DOWN if request.direction is Direction.UP else Direction.UP
            kept = PauseRecord(other, pause.until_unix_ms, pause.reason, pause.request_id)
            left.append(kept)
        else:
            left.append(pause)
    draft.change(pauses=tuple(left))
    return ServiceOutcome.DONE, f"resumed: {request.direction.value}"


def _change(draft: StepDraft, request: ChangeSettings) -> tuple[ServiceOutcome, str]:
    asked = overrides_of(request)
    try:
        settings = draft.state.settings.with_overrides(asked)
    except ValueError as error:
        return ServiceOutcome.REFUSED, str(error)
    overrides = {**draft.state.overrides, **asked}
    trigger = try_again(draft.state.trigger)
    draft.change(settings=settings, overrides=overrides, trigger=trigger)
    return ServiceOutcome.DONE, "settings changed"


def _update(draft: StepDraft, request: UpdateDeployments) -> tuple[ServiceOutcome, str]:
    if draft.state.roll_out is not None:
        return ServiceOutcome.REFUSED, "another roll-out is in progress"
    roll_out.begin(draft, request)
    return ServiceOutcome.ACCEPTED, f"version {draft.state.deployment_version}, one by one"
