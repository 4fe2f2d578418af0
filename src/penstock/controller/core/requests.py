"""Operators' requests: pause, resume, change settings, update deployments. Each is answered.

The service topic is read again after a restart; a request that was seen before is not carried out
twice. "Done" means done: a change that the group still has to follow is accepted first, and
answered again when the group has.
"""

from collections.abc import Container

from penstock.controller.core import roll_out
from penstock.controller.core.inputs import Requested
from penstock.controller.core.service_answers import answer
from penstock.controller.core.settings import (
    controller_settings,
    overrides_of,
    with_overrides,
)
from penstock.controller.core.state import PauseRecord
from penstock.controller.core.step_draft import StepDraft
from penstock.errors import SettingsError
from penstock.messages import (
    ChangeSettings,
    Direction,
    Pause,
    Resume,
    ServiceOutcome,
    UpdateDeployments,
)
from penstock.model.sentences import counted, shortened_list
from penstock.packing.trigger import try_again

# Far more than are ever repeated: after a restart, only those since the last save come again.
REQUESTS_REMEMBERED_MAX = 200
# More are never needed at once, and a writer to the topic cannot fill the state.
PAUSES_MAX = 20
# The settings that the group itself has to follow.
BOUNDS = frozenset({"consumers_min", "consumers_max"})


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
    answer(draft, request.request_id, outcome, explanation)


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
    """Checked like the settings file; refused as a whole when one value is wrong."""
    asked = overrides_of(request)
    overrides = {**draft.state.overrides, **asked}
    try:
        settings = controller_settings(with_overrides(draft.state.chosen, overrides))
    except SettingsError as error:
        return ServiceOutcome.REFUSED, error.message.rstrip(".")
    draft.change(settings=settings, overrides=overrides, trigger=try_again(draft.state.trigger))
    missing = _outside_bounds(draft, asked)
    if missing:
        draft.change(bounds_requests=(*draft.state.bounds_requests, request.request_id))
        return ServiceOutcome.ACCEPTED, missing
    changed = shortened_list([f"{name} {value}" for name, value in asked.items()], most=len(asked))
    return ServiceOutcome.DONE, f"changed: {changed}" if asked else "nothing to change"


def _outside_bounds(draft: StepDraft, bounds: Container[str] = BOUNDS) -> str:
    """What keeps the group from its bounds, or nothing."""
    settings, number = draft.state.settings, len(draft.consumers)
    if "consumers_max" in bounds and number > settings.consumers_max:
        return f"{counted(number, 'consumer')} now, the maximum is {settings.consumers_max}"
    up = sum(draft.is_ready(consumer) for consumer in draft.consumers)
    if "consumers_min" in bounds and up < settings.consumers_min:
        return f"{counted(up, 'consumer')} up, the minimum is {settings.consumers_min}"
    return ""


def answer_when_within_bounds(draft: StepDraft) -> None:
    """Answer the requests that changed the bounds, once the group keeps them."""
    if not draft.state.bounds_requests or _outside_bounds(draft):
        return
    for request_id in draft.state.bounds_requests:
        explanation = f"the group has {counted(len(draft.consumers), 'consumer')}"
        answer(draft, request_id, ServiceOutcome.DONE, explanation)
    draft.change(bounds_requests=())
    draft.save()


def _update(draft: StepDraft, request: UpdateDeployments) -> tuple[ServiceOutcome, str]:
    if draft.state.roll_out is not None:
        return ServiceOutcome.REFUSED, "another roll-out is in progress"
    roll_out.begin(draft, request)
    return ServiceOutcome.ACCEPTED, f"version {draft.state.deployment_version}, one by one"
