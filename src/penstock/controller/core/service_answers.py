"""Answers to operators' requests. Each is sent and recorded in the history."""

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Send
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ServiceAnswer, ServiceOutcome
from penstock.messages.fields import ANSWER_LENGTH_MAX
from penstock.model.sentences import cut_at_word


def answer(
    draft: StepDraft,
    request_id: str,
    outcome: ServiceOutcome,
    detail: str,
    progress: tuple[int, int] | None = None,
    *,
    asked_by: str = "",
) -> None:
    """`progress` is how much of how much is done, where that can be counted.

    `asked_by` is who sent the request, as far as the request says it.
    """
    done, of = progress or (None, None)
    message = ServiceAnswer(
        request_id=request_id,
        controller_epoch=draft.state.controller_epoch,
        outcome=outcome,
        detail=cut_at_word(detail, ANSWER_LENGTH_MAX),
        done=done,
        of=of,
    )
    draft.do(Send(message))
    by = f" of {asked_by}" if asked_by else ""
    draft.decide(Code.REQUEST_ANSWERED, f"request {request_id}{by}: {outcome.value}, {detail}")
