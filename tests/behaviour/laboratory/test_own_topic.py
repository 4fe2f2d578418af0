"""What the reports of one consumer say about a topic of the user."""

from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.laboratory.studies.consumer.own_topic import finding_of
from penstock.messages import (
    ConsumerPhase,
    ConsumerReport,
    CycleMeasurement,
    TopicCapacity,
    Wait,
    WaitsFor,
)


def report(number: int, *capacities: TopicCapacity, **cycle: int) -> ConsumerReport:
    nothing: dict[str, Any] = dict.fromkeys(CycleMeasurement.model_fields, 0)
    return ConsumerReport(
        consumer_id=1,
        incarnation=1,
        sequence=number,
        controller_epoch=1,
        plan_number=1,
        report_number=number,
        phase=ConsumerPhase.RUNNING,
        topic_capacities=capacities,
        cycle=CycleMeasurement(**nothing | cycle),
    )


def full(figure: float) -> TopicCapacity:
    return TopicCapacity(topic="orders", capacity_log_bytes_per_s=figure)


def test_the_last_figure_of_full_batches_counts() -> None:
    """With the least and the most on the way; a lower bound only where there is nothing else."""
    least = TopicCapacity(topic="orders", at_least_log_bytes_per_s=1e6)
    other = TopicCapacity(topic="other", capacity_log_bytes_per_s=9e6)
    found = finding_of(
        "orders",
        [report(1, least, records=5), report(2, full(2e6), other), report(3, full(3e6), records=7)],
        12.0,
        whole=True,
    )
    assert (found.log_bytes_per_s, found.at_least, found.records) == (3e6, False, 12)
    assert (found.lowest_bytes_per_s, found.highest_bytes_per_s) == (2e6, 3e6)
    bound = finding_of("orders", [report(1, least)], 12.0, whole=True)
    assert (bound.log_bytes_per_s, bound.at_least) == (1e6, True)


def test_a_topic_with_too_little_is_an_error() -> None:
    """It names the topic; one batch shows only how long Spark takes to warm up."""
    once = report(1, batches=1, log_bytes=8_000_000, write_ms=2_000)
    for reports in ([report(1)], [once]):
        with pytest.raises(PenstockError, match="orders has too few records"):
            finding_of("orders", reports, 12.0, whole=True)


def test_a_topic_that_is_carried_in_a_few_batches_shows_what_they_carried() -> None:
    """In their own time, as a lower bound; the parts of one report count once."""
    first = report(1, batches=1, records=8, log_bytes=8_000_000, read_ms=500, write_ms=1_500)
    second = report(
        2, batches=2, records=42, log_bytes=42_000_000, transform_ms=2_000, commit_ms=1_000
    )
    again = second.model_copy(update={"part": 2, "parts": 2})
    found = finding_of("orders", [first, second, again], 12.0, whole=True)
    assert (found.log_bytes_per_s, found.at_least, found.records) == (10e6, True, 50)
    with pytest.raises(PenstockError, match="carried too little of orders in 12 s"):
        finding_of("orders", [first, second], 12.0, whole=False)


def test_a_consumer_that_carries_too_little_says_what_it_waits_for() -> None:
    """The topic may have records enough, and Spark be away."""
    waiting = report(1).model_copy(update={"waits_for": Wait(what=WaitsFor.SPARK, since_ms_ago=9)})
    with pytest.raises(PenstockError, match=r"too little of orders in 12 s .* waits for spark"):
        finding_of("orders", [report(1), waiting], 12.0, whole=False)
    with pytest.raises(PenstockError, match=r"to be measured\. Check"):
        finding_of("orders", [], 12.0, whole=False)
