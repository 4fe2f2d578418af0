"""Operators' requests: pause, resume, change settings, update deployments. Each is answered.

The service topic is read again after a restart; a request that was seen before is not carried out
twice. "Done" means done: a change that the group still has to follow is accepted first, and
answered again when the group has.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.controller.core import roll_out
from penstock.controller.core.allowed_code import code_named, not_allowed
from penstock.controller.core.housekeeping import idle
from penstock.controller.core.inputs import Requested
from penstock.controller.core.load import available
from penstock.controller.core.new_settings import need_a_restart
from penstock.controller.core.service_answers import answer
from penstock.controller.core.settings import (
    LiveChange,
    controller_settings,
    overrides_of,
    shown_value,
    with_overrides,
)
from penstock.controller.core.state import BoundsRequest, PauseRecord
from penstock.controller.core.step_draft import StepDraft
from penstock.errors import SettingsError
from penstock.messages import (
    ChangeSettings,
    Direction,
    DropChanges,
    Pause,
    Resume,
    ServiceOutcome,
    UpdateDeployments,
)
from penstock.model.sentences import counted, shortened_list
from penstock.packing.trigger import try_again
from penstock.settings.objective import is_set
from penstock.settings.sections import PackingSettings, Settings

# Far more than are ever repeated: after a restart, only those since the last save come again.
REQUESTS_REMEMBERED_MAX = 200
# More are never needed at once, and a writer to the topic cannot fill the state.
PAUSES_MAX = 20
BOUNDS_REQUESTS_MAX = 20
# The settings that the group itself has to follow.
BOUNDS = ("consumers_min", "consumers_max", "spare_consumers")


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
    elif isinstance(request, DropChanges):
        outcome, explanation = _drop(draft, request)
    elif isinstance(request, UpdateDeployments):
        outcome, explanation = _update(draft, request, given)
    else:
        outcome, explanation = ServiceOutcome.REFUSED, "no such request"
    answer(draft, request.request_id, outcome, explanation, asked_by=request.requested_by)


def _pause(draft: StepDraft, request: Pause) -> tuple[ServiceOutcome, str]:
    if len(draft.state.pauses) >= PAUSES_MAX:
        return ServiceOutcome.REFUSED, f"there are {PAUSES_MAX} pauses already"
    pause = PauseRecord(
        request.direction, request.until_unix_ms, request.reason, request.request_id
    )
    draft.change(pauses=(*draft.state.pauses, pause))
    reason = f"; {request.reason}" if request.reason else ""
    return ServiceOutcome.DONE, f"paused: {request.direction.value}{reason}"


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
    if tuple(left) == draft.state.pauses:
        return ServiceOutcome.DONE, "nothing was paused"
    draft.change(pauses=tuple(left))
    return ServiceOutcome.DONE, f"resumed: {request.direction.value}"


def _change(draft: StepDraft, request: ChangeSettings) -> tuple[ServiceOutcome, str]:
    """Checked like the settings file; refused as a whole when one value is wrong."""
    asked = overrides_of(request)
    overrides = {**draft.state.overrides, **asked}
    try:
        checked = with_overrides(draft.state.chosen, overrides, draft.state.followed)
    except SettingsError as error:
        return ServiceOutcome.REFUSED, error.message.rstrip(".")
    if _has_idle_knob(asked, checked.packing):
        return ServiceOutcome.REFUSED, f"algorithm {checked.packing.algorithm} ignores the knob"
    origins = dict(draft.state.override_origins)
    for option in asked:
        origins[option] = LiveChange(
            request.request_id, request.requested_by, draft.now_ms,
            shown_value(draft.state.chosen, option), is_set(draft.state.chosen, option),
        )  # fmt: skip
    changed = [f"{option} {shown_value(checked, option)}" for option in asked]
    done = f"changed: {shortened_list(changed, most=len(asked))}" if asked else "nothing to change"
    return _use(draft, request.request_id, checked, Overrides(overrides, origins, asked, done))


def _drop(draft: StepDraft, request: DropChanges) -> tuple[ServiceOutcome, str]:
    """Take changes back; those that were not changed are no error."""
    named: Collection[str] = request.options or draft.state.overrides
    gone = [option for option in draft.state.overrides if option in named]
    if not gone:
        return ServiceOutcome.DONE, "nothing was changed"
    left = {o: value for o, value in draft.state.overrides.items() if o not in gone}
    origins = {o: one for o, one in draft.state.override_origins.items() if o not in gone}
    try:
        checked = with_overrides(draft.state.chosen, left, draft.state.followed)
    except SettingsError as error:
        return ServiceOutcome.REFUSED, error.message.rstrip(".")
    back = [f"{option} {shown_value(checked, option)}" for option in gone]
    done = f"as in the settings again: {shortened_list(back, most=len(back))}"
    return _use(draft, request.request_id, checked, Overrides(left, origins, gone, done))


@dataclass(frozen=True, slots=True)
class Overrides:
    """What requests have changed, after one more request."""

    values: Mapping[str, Any]
    origins: Mapping[str, LiveChange]
    # The options that this request changes.
    touched: Collection[str]
    # The answer when the group has nothing to follow.
    done: str


def _use(
    draft: StepDraft, request_id: str, checked: Settings, after: Overrides
) -> tuple[ServiceOutcome, str]:
    settings = controller_settings(checked)
    wanted = {
        name: getattr(settings, name) for name in BOUNDS if f"controller.{name}" in after.touched
    }
    replaced = [r for r in draft.state.bounds_requests if _differs(r.wanted, wanted)]
    kept = tuple(r for r in draft.state.bounds_requests if r not in replaced)
    missing, held_by = _what_is_missing(draft, wanted, settings.consumers_max)
    if missing and len(kept) >= BOUNDS_REQUESTS_MAX:
        return ServiceOutcome.REFUSED, f"{BOUNDS_REQUESTS_MAX} requests wait for the group already"
    for former in replaced:
        explanation = f"replaced by request {request_id}"
        answer(draft, former.request_id, ServiceOutcome.REFUSED, explanation)
    draft.change(
        settings=settings,
        overrides=after.values,
        override_origins=after.origins,
        trigger=try_again(draft.state.trigger),
        bounds_requests=kept,
    )
    if missing:
        waiting = BoundsRequest(request_id, wanted, held_by)
        draft.change(bounds_requests=(*kept, waiting))
        return ServiceOutcome.ACCEPTED, missing
    return ServiceOutcome.DONE, after.done


def _has_idle_knob(asked: Mapping[str, Any], packing: PackingSettings) -> bool:
    """Whether the request sets a knob without effect.

    The settings refuse every such knob but the default. A request may set that one only together
    with an algorithm that has no knob, to take back an earlier knob.
    """
    if "packing.knob" not in asked or packing.uses_knob():
        return False
    return "packing.algorithm" not in asked or "@" in packing.algorithm


def _differs(wanted: Mapping[str, int], later: Mapping[str, int]) -> bool:
    return any(later.get(name, value) != value for name, value in wanted.items())


def _what_is_missing(
    draft: StepDraft, wanted: Mapping[str, int], consumers_max: int
) -> tuple[str, str]:
    """What keeps the group from what is wanted, and the pause that holds it; or nothing."""
    number, staying = len(draft.consumers), available(draft)
    maximum = wanted.get("consumers_max", number)
    if number > maximum:
        missing = f"{counted(number, 'consumer')} now, the maximum is {maximum}"
        return _with_pause(draft, missing, Direction.DOWN, len(staying) > maximum)
    up = sum(draft.is_ready(consumer) for consumer in draft.consumers)
    minimum = wanted.get("consumers_min", up)
    if up < minimum:
        missing = f"{counted(up, 'consumer')} up, the minimum is {minimum}"
        return _with_pause(draft, missing, Direction.UP, len(staying) < minimum)
    resting = idle(draft)
    spares = sum(draft.is_ready(consumer) for consumer in resting)
    spares_wanted = wanted.get("spare_consumers", spares)
    if spares < spares_wanted:
        missing = f"{counted(spares, 'spare consumer')} up, {spares_wanted} wanted"
        if number >= consumers_max:
            missing += f"; the group is at its maximum of {consumers_max}"
        return _with_pause(draft, missing, Direction.UP, len(resting) < spares_wanted)
    return "", ""


def _with_pause(
    draft: StepDraft, missing: str, direction: Direction, must_begin: bool
) -> tuple[str, str]:
    """A pause holds only what has still to begin: a consumer that comes or leaves goes on."""
    pauses = (*draft.state.pauses, *draft.state.excluded) if must_begin else ()
    for pause in pauses:
        if pause.direction in {Direction.BOTH, direction}:
            held = f"{missing}; held by pause {pause.request_id} ({pause.direction.value})"
            return held, pause.request_id
    return missing, ""


def answer_when_within_bounds(draft: StepDraft) -> None:
    """Answer the requests that the group now follows, and those that a pause begins to hold."""
    before = draft.state.bounds_requests
    if not before:
        return
    after = tuple(r for request in before if (r := _answered(draft, request)) is not None)
    if after != before:
        draft.change(bounds_requests=after)
        draft.save()


def _answered(draft: StepDraft, request: BoundsRequest) -> BoundsRequest | None:
    """The request if it still waits; None once answered."""
    settings = draft.state.settings
    if _differs(request.wanted, {name: getattr(settings, name) for name in BOUNDS}):
        explanation = "the settings of the restarted controller do not allow it"
        answer(draft, request.request_id, ServiceOutcome.FAILED, explanation)
        return None
    missing, held_by = _what_is_missing(draft, request.wanted, settings.consumers_max)
    if not missing:
        explanation = f"the group has {counted(len(draft.consumers), 'consumer')}"
        answer(draft, request.request_id, ServiceOutcome.DONE, explanation)
        return None
    if held_by != request.held_by:
        answer(draft, request.request_id, ServiceOutcome.ACCEPTED, missing)
    return replace(request, held_by=held_by)


def _update(
    draft: StepDraft, request: UpdateDeployments, given: Requested
) -> tuple[ServiceOutcome, str]:
    if draft.state.roll_out is not None and draft.state.roll_out.undoes is None:
        return ServiceOutcome.REFUSED, "another roll-out is in progress"
    new = given.new_settings if request.from_settings else None
    if request.from_settings and new is None:
        return ServiceOutcome.REFUSED, given.not_read
    chosen = draft.state.chosen if new is None else new.settings
    refusal = _without_effect(chosen, request) or not_allowed(chosen, request)
    if refusal:
        return ServiceOutcome.REFUSED, refusal
    if new is not None:
        fixed = need_a_restart(draft.state.chosen, new.settings)
        if fixed:
            return ServiceOutcome.REFUSED, f"changes that need a restart: {shortened_list(fixed)}"
    roll_out.begin(draft, request, new)
    version = f"version {draft.state.deployment_version + 1}"
    code = code_named(request)
    named = f"{version} ({code})" if code else version
    return ServiceOutcome.ACCEPTED, f"{named} is tried first, then one by one"


def _without_effect(settings: Settings, request: UpdateDeployments) -> str:
    """What of the request would change nothing, or stop every consumer; empty when all of it acts.

    Consumers of a Connect server cannot set what belongs to the start of a JVM.
    """
    if settings.controller.deployment == "local" and (request.image or request.resources):
        return "an image and resources are for consumers on Kubernetes; these are local processes"
    if settings.spark.uses_connect_server:
        for name in sorted(request.spark_settings):
            if not name.startswith("spark.sql."):
                return f"{name} belongs to the start of the Spark Connect server, not to consumers"
    return ""
