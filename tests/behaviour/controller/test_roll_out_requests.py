"""A request for new deployments is refused where it would change nothing or stop every consumer."""

from typing import Any

import pytest
from pydantic import ValidationError

from kit.controller.story import TWO_CONSUMERS, after
from penstock.controller.core.inputs import Requested
from penstock.messages import UpdateDeployments

MEMORY = {"spark.driver.memory": "2g"}
SHUFFLE = {"spark.sql.shuffle.partitions": "4"}
LOCAL, KUBERNETES = "deployment=local", "deployment=kubernetes"
CONNECT, OWN = "master=sc://spark:15002", "master=local[2]"


@pytest.mark.parametrize(
    ("settings", "asked", "outcome"),
    [
        (LOCAL, {"image": "penstock:2"}, "refused"),
        (LOCAL, {"resources": {"memory_megabytes": 512}}, "refused"),
        (LOCAL, {"environment": {"APP_X": "1"}}, "accepted"),
        (LOCAL, {}, "accepted"),
        (KUBERNETES, {"image": "penstock:2"}, "accepted"),
        (KUBERNETES, {"resources": {"memory_megabytes": 512}}, "accepted"),
        (CONNECT, {"spark_settings": MEMORY}, "refused"),
        (CONNECT, {"spark_settings": SHUFFLE | MEMORY}, "refused"),
        (CONNECT, {"spark_settings": SHUFFLE}, "accepted"),
        (OWN, {"spark_settings": MEMORY}, "accepted"),
    ],
)
def test_what_has_no_effect_is_refused(settings: str, asked: dict[str, Any], outcome: str) -> None:
    """Local processes have no image; consumers of a Connect server cannot set its memory."""
    teller = after(f"settings {settings}", *TWO_CONSUMERS)
    request = UpdateDeployments.model_validate({"request_id": "u", **asked})
    assert f"  > answer u: {outcome}" in teller.give(Requested(teller.now_ms, request))
    assert teller.state is not None
    assert (teller.state.roll_out is not None) is (outcome == "accepted")


def test_a_transformation_is_for_a_topic_not_for_a_pattern() -> None:
    """The settings name topics one by one; a pattern would be taken for a topic of that name."""
    with pytest.raises(ValidationError, match="transformations"):
        UpdateDeployments(request_id="u", transformations={"orders*": "mine:clean"})
