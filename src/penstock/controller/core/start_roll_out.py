"""A start with another deployment than the consumers have, such as `helm upgrade` brings.

Consumers outlive the controller that made them. A controller that starts with another image, other
settings or another pod template for them replaces them one by one, by an ordinary roll-out, under a
version of its own. Until then they stay as they are, also when one of them has to be made again.
What was rolled back is not tried again at the next start, only when somebody asks for it.
"""

from dataclasses import replace
from enum import StrEnum

from penstock.controller.core.decisions import Code
from penstock.controller.core.inputs import NewSettings
from penstock.controller.core.roll_out import begin
from penstock.controller.core.state import State
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import UpdateDeployments


class AtStart(StrEnum):
    """What a start means for the consumers that the last controller left."""

    AS_THEY_ARE = "they are deployed as this start would do it"
    REPLACE_THEM = "they are replaced one by one"
    ROLLED_BACK_BEFORE = "they stay: what this start brings was rolled back before"


def at_start(*, digest: str, of_consumers: str, rolled_back: str) -> AtStart:
    """By the digests of this start, of the consumers, and of what was rolled back last."""
    if digest == of_consumers:
        return AtStart.AS_THEY_ARE
    return AtStart.ROLLED_BACK_BEFORE if digest == rolled_back else AtStart.REPLACE_THEM


def without_untried(state: State, due: NewSettings | None) -> State:
    """A roll-out of an earlier start that had not begun yet is forgotten: this start has its own.

    Its settings were not saved, and nothing was deployed with them.
    """
    roll_out = state.roll_out
    is_overtaken = (
        due is not None
        and roll_out is not None
        and not roll_out.is_tried
        and roll_out.request.from_settings
    )
    return replace(state, due=due, roll_out=None if is_overtaken else roll_out)


def begin_what_is_due(draft: StepDraft) -> None:
    """Begin the roll-out of this start; after one that is in progress, instead of a roll-back."""
    due, roll_out = draft.state.due, draft.state.roll_out
    if due is None or (roll_out is not None and roll_out.undoes is None):
        return
    request = UpdateDeployments(
        request_id=f"start-{draft.state.controller_epoch}",
        requested_by="the start of a controller with another deployment",
        from_settings=True,
    )
    draft.change(due=None)
    draft.decide(
        Code.ROLL_OUT,
        f"this controller was started with another deployment ({due.name}): version "
        f"{draft.state.deployment_version + 1} replaces the consumers one by one",
    )
    begin(draft, request, due)
