"""The steps of a request, as `penstock service send` tells them."""

import pytest

from penstock.cli.service import step_text
from penstock.messages import ServiceAnswer, ServiceOutcome


@pytest.mark.parametrize(
    ("outcome", "detail", "done", "of", "text"),
    [
        (
            ServiceOutcome.IN_PROGRESS,
            "1 consumer of the old version is left",
            2,
            3,
            "in progress: 2 of 3; 1 consumer of the old version is left",
        ),
        (ServiceOutcome.ACCEPTED, "version 1 is tried", None, None, "accepted: version 1 is tried"),
        (ServiceOutcome.IN_PROGRESS, "", 1, 3, "in progress: 1 of 3"),
        (ServiceOutcome.ACCEPTED, "", None, None, "accepted"),
    ],
)
def test_a_step_has_its_name_then_how_far_it_is(
    outcome: ServiceOutcome, detail: str, done: int | None, of: int | None, text: str
) -> None:
    """It was `in_progress 2 of 3 1 consumer of the old version left`."""
    answer = ServiceAnswer(
        request_id="u1", controller_epoch=1, outcome=outcome, detail=detail, done=done, of=of
    )
    assert step_text(answer) == text
