"""Which topics are measured, when the layout is asked for, and what is logged how often."""

import pytest

from penstock.monitor.core.broker_watch import LayoutWatch, OutageWatch, sample_plan
from penstock.monitor.core.partitions_of_interest import TopicsOfInterest, nothing_included
from penstock.settings.sections import MonitorSettings, TopicsSettings


@pytest.mark.parametrize(
    ("topic", "is_internal", "wanted"),
    [
        ("orders", False, True),
        ("orders-archive", False, False),
        ("my-orders", False, False),
        ("__consumer_offsets", True, False),
        ("__transaction_state", False, False),
        ("orders-internal", True, False),
        ("data-engineering-monitor", False, False),
        ("data-engineering-controller", False, False),
        ("data-engineering-query", False, False),
        ("data-engineering-service", False, False),
        ("data-engineering-events", False, True),
    ],
)
def test_interest(topic: str, is_internal: bool, wanted: bool) -> None:
    """Patterns are for whole names, exclude wins, internal and control topics never."""
    monitor = MonitorSettings(include=["orders.*", "data-engineering.*"], exclude=[".*-archive"])
    interest = TopicsOfInterest.from_settings(monitor, TopicsSettings())
    assert interest.includes(topic, is_internal=is_internal) == wanted


def test_control_topics_follow_the_prefix() -> None:
    """Under another prefix the default names are ordinary topics."""
    interest = TopicsOfInterest.from_settings(MonitorSettings(), TopicsSettings(prefix="mine"))
    assert not interest.includes("mine-monitor", is_internal=False)
    assert interest.includes("data-engineering-monitor", is_internal=False)


THERE = ["Customer_Orders", "__consumer_offsets", "payments-v1", *TopicsSettings().names.all]


def test_patterns_that_match_nothing_are_told_with_the_nearest_topics() -> None:
    """Of those that could be carried: neither Kafka's own topics nor ours."""
    error = nothing_included(MonitorSettings(include=["paymnts.*"]), TopicsSettings(), THERE)
    assert error is not None
    assert error.message == (
        "No topic matches monitor.include 'paymnts.*'; there are payments-v1, Customer_Orders."
    )
    many = [*THERE, *(f"other-{number}" for number in range(20))]
    error = nothing_included(
        MonitorSettings(include=["customer-orders"]), TopicsSettings(), many, named_by="--topic"
    )
    assert error is not None
    assert error.message.startswith("No topic matches --topic 'customer-orders'; there are Cust")
    assert error.message.endswith("and 17 more.")


def test_what_leaves_out_everything_is_named_too() -> None:
    """The patterns to include are not the mistake then."""
    monitor = MonitorSettings(exclude=[".*"])
    error = nothing_included(monitor, TopicsSettings(), THERE)
    assert error is not None
    assert "without monitor.exclude '.*'" in error.message


def test_a_kafka_without_topics_is_no_mistake_unless_some_were_named() -> None:
    """They may be made later; a named one that is not seen may lack a right."""
    own = list(TopicsSettings().names.all)
    assert nothing_included(MonitorSettings(), TopicsSettings(), own) is None
    error = nothing_included(MonitorSettings(include=["orders"]), TopicsSettings(), own)
    assert error is not None
    assert "none that this user may see" in error.message
    assert nothing_included(MonitorSettings(include=["pay.*"]), TopicsSettings(), THERE) is None


def test_layout_is_asked_on_a_timer_and_on_a_hint() -> None:
    """Slowly when nothing happens; at most once a second on hints; at once when never seen."""
    watch = LayoutWatch(refresh_s=5.0)
    assert watch.is_due(100.0)
    assert watch.received(100.0, 7)
    assert not watch.received(100.0, 7)
    assert not watch.is_due(104.9)
    assert watch.is_due(105.0)
    watch.doubt()
    assert not watch.is_due(100.5)
    assert watch.is_due(101.0)
    watch.received(101.0, 8)
    assert not watch.is_due(102.0)


def test_an_outage_is_said_once() -> None:
    """One event when a broker falls silent for three seconds, one when it is back."""
    watch = OutageWatch(silent_after_s=3.0)
    for number in range(3):
        assert not list(watch.events(number, {2}, {}))
    assert [event.name for event in watch.events(3, {2}, {})] == ["broker_silent"]
    for number in range(4, 50):
        assert not list(watch.events(number, {2}, {}))
    (back,) = watch.events(50, set(), {})
    assert (back.name, back.keys) == ("broker_answers_again", {"broker": 2, "silent_s": 50})


def test_one_late_answer_is_no_outage() -> None:
    """A broker that missed a round or two is not logged."""
    watch = OutageWatch(silent_after_s=3.0)
    for number in range(30):
        assert not list(watch.events(number, {1} if number % 4 < 2 else (), {}))


def test_a_lasting_failure_is_said_once() -> None:
    """The same failure every round is one event, until it has been away for a minute."""
    watch = OutageWatch(silent_after_s=3.0)
    failure = {"offsets of orders": "error code 29"}
    assert [event.name for event in watch.events(0, (), failure)] == ["question_failed"]
    assert not [event for number in range(1, 100) for event in watch.events(number, (), failure)]
    assert not list(watch.events(130, (), {}))
    assert not list(watch.events(165, (), {}))
    assert list(watch.events(166, (), failure))


def test_partitions_are_sampled_one_after_another() -> None:
    """Every filled partition is sampled at its newest records; empty ones are skipped."""
    spans = [(("t", 0), 0, 5000), (("t", 1), 10, 10), (("t", 2), 0, 7), (("t", 3), 90, 100)]
    first = sample_plan(spans, after=None, limit=2)
    assert first == [(("t", 0), 4000), (("t", 2), 0)]
    assert sample_plan(spans, after=("t", 2), limit=2) == [(("t", 3), 90), (("t", 0), 4000)]
