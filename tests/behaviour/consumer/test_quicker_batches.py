"""Batches of several topics that are quicker than expected raise what was measured too low."""

import pytest

from penstock.consumer.core.topic_capacity import TopicCapacities

WARM = TopicCapacities(warm=frozenset({"plain", "slow", "rare"}))


def known(**seconds_per_mb: float) -> TopicCapacities:
    """What is known of each topic alone."""
    found = WARM
    for topic, seconds in seconds_per_mb.items():
        for _ in range(2):
            found = found.after({topic: 1e6}, seconds, was_full=True)
    return found


def speeds(found: TopicCapacities) -> dict[str, float | None]:
    return {topic: found.shown(topic) for topic in found.by_topic}


def test_batches_of_several_topics_that_are_quicker_than_expected_raise_all_of_them() -> None:
    """Measured by mistake as too slow, they would stay so while the consumer only keeps up."""
    found = known(plain=1.0, slow=3.0)
    for _ in range(4):
        found = found.after({"plain": 1e6, "slow": 1e6}, 2.0, was_full=False)
    assert speeds(found) == {"plain": 1e6, "slow": pytest.approx(1e6 / 3)}, "too few of them"
    found = found.after({"plain": 1e6, "slow": 1e6}, 2.0, was_full=False)
    assert speeds(found) == {"plain": 2e6, "slow": pytest.approx(2e6 / 3)}
    for _ in range(5):
        found = found.after({"plain": 1e6, "slow": 1e6}, 2.0, was_full=False)
    assert speeds(found) == {"plain": 2e6, "slow": pytest.approx(2e6 / 3)}, "as expected now"


@pytest.mark.parametrize(
    ("batch", "seconds", "was_full"),
    [
        ({"plain": 1e6, "slow": 1e6}, 3.7, False),
        ({"plain": 1e6, "slow": 1e6}, 9.0, False),
        ({"plain": 1e6, "slow": 1e6}, 2.0, True),
        ({"plain": 1e6, "slow": 0.0}, 1.0, False),
        ({"plain": 1e6, "slow": 1e6}, 0.0, False),
    ],
    ids=["about as expected", "slower", "full", "one topic failed", "no time passed"],
)
def test_other_batches_of_several_topics_change_nothing(
    batch: dict[str, float], seconds: float, *, was_full: bool
) -> None:
    """Most of a small batch is fixed cost, and a full one shows the capacity of its mixture."""
    found = known(plain=1.0, slow=3.0)
    for _ in range(6):
        found = found.after(batch, seconds, was_full=was_full)
    assert speeds(found) == {"plain": 1e6, "slow": pytest.approx(1e6 / 3)}


@pytest.mark.parametrize("full", [{"plain": 1e6, "slow": 1e6}, {"slow": 1e6}])
def test_a_full_batch_ends_the_comparison(full: dict[str, float]) -> None:
    """What came before was another load."""
    found = known(plain=1.0, slow=3.0)
    for ends in (full, None):
        for _ in range(4):
            found = found.after({"plain": 1e6, "slow": 1e6}, 2.0, was_full=False)
        found = found if ends is None else found.after(ends, 3.0, was_full=True)
    assert speeds(found) == {"plain": 1e6, "slow": pytest.approx(1e6 / 3)}


def test_a_topic_of_unknown_cost_may_have_cost_nothing() -> None:
    """The others alone would have taken longer than the whole batch did."""
    found = known(slow=3.0)
    for _ in range(5):
        found = found.after({"plain": 1e6, "slow": 1e6}, 2.0, was_full=False)
    assert speeds(found) == {"slow": pytest.approx(1e6 / 2)}


@pytest.mark.parametrize("full", [{"plain": 1e6, "slow": 1e6}, {"slow": 1e6}])
def test_a_full_batch_ends_what_quicker_ones_have_raised(full: dict[str, float]) -> None:
    """The consumer is behind again, so that what it measures counts."""
    found = known(plain=1.0, slow=3.0)
    for _ in range(5):
        found = found.after({"plain": 1e6, "slow": 1e6}, 2.0, was_full=False)
    assert found.shown("plain") == 2e6
    found = found.after(full, 3.0, was_full=True)
    assert speeds(found) == {"plain": 1e6, "slow": pytest.approx(1e6 / 3)}


def test_quick_batches_raise_what_was_measured_by_four_times_at_most() -> None:
    """A topic that is far too low comes seldom, and must not raise the others without end."""
    found = TopicCapacities(known(plain=1.0, slow=3.0, rare=100.0).by_topic, warm=frozenset())
    found = found.after({"plain": 0.0, "slow": 0.0, "rare": 0.0}, 1.0, was_full=False)
    for number in range(1_000):
        often = {"plain": 1e5, "slow": 1e5}
        found = found.after(often if number % 5 else {**often, "rare": 1e6}, 1.0, was_full=False)
    assert found.shown("plain") == 4e6
    assert found.shown("rare") == pytest.approx(4e4)
