"""The schedule of a campaign's faults."""

import pytest

from penstock.laboratory.campaign.faults import Fault, Harm, Part
from penstock.laboratory.campaign.schedule import (
    DECK,
    MADE_TOPICS,
    PARTITIONS_MAX,
    PAUSES_S,
    drawn_faults,
)

TOPICS = {"keyed": 6, "plain": 6}
SEEDS = range(60)


def test_a_seed_gives_the_same_faults_again_and_another_seed_others() -> None:
    """A run can be repeated, and seeds differ."""
    assert drawn_faults(7, 5, TOPICS) == drawn_faults(7, 5, TOPICS)
    assert len({drawn_faults(seed, 5, TOPICS) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize(("minutes", "every_s", "count"), [(3, 10, 18), (0.5, 5, 6), (60, 10, 360)])
def test_there_is_one_fault_per_period_on_average(
    minutes: float, every_s: float, count: int
) -> None:
    """The number of faults follows the length; they come in order, the last one at the end."""
    faults = drawn_faults(3, minutes, TOPICS, every_s=every_s)
    assert len(faults) == count
    assert [one.at_s for one in faults] == sorted(one.at_s for one in faults)
    assert all(one.at_s >= 5 for one in faults)
    assert faults[-1].at_s == 60 * minutes - 2


def test_a_whole_deck_has_every_kind_as_often_as_it_says() -> None:
    """A campaign as long as the deck harms every part in every way."""
    cards = sum(count for _, _, count in DECK)
    for seed in SEEDS:
        faults = drawn_faults(seed, cards * 10 / 60, TOPICS)
        processes = {(one.part, one.harm) for one in faults if one.part is not Part.TOPIC}
        wanted = {(part, harm) for part, harm, _ in DECK if part is not Part.TOPIC}
        assert processes == wanted
        assert sum(one.part is Part.TOPIC for one in faults) == 5


def test_pauses_last_as_long_as_their_part_allows_and_end_with_the_campaign() -> None:
    """Only a pause has a length; it is cut where the campaign ends."""
    for seed in SEEDS:
        for one in drawn_faults(seed, 4, TOPICS):
            if one.harm is not Harm.PAUSE:
                assert one.for_s == 0
                continue
            shortest, longest = PAUSES_S[one.part]
            assert 1 <= one.for_s <= longest
            assert one.at_s + one.for_s <= 240.1
            assert one.for_s >= shortest or one.at_s + one.for_s >= 239.9


def test_only_a_topic_that_is_there_is_grown_or_deleted() -> None:
    """The changes of topics make sense one after another, and no topic grows without end."""
    made_again = 0
    for seed in SEEDS:
        there = dict(TOPICS)
        seen: set[str] = set()
        for one in drawn_faults(seed, 30, TOPICS):
            if one.part is not Part.TOPIC:
                continue
            if one.harm is Harm.MAKE:
                assert one.topic not in there
                made_again += one.topic in seen
                seen.add(one.topic)
                there[one.topic] = one.partitions
            elif one.harm is Harm.GROW:
                assert there[one.topic] < one.partitions <= PARTITIONS_MAX
                there[one.topic] = one.partitions
            else:
                assert one.topic in MADE_TOPICS
                del there[one.topic]
    assert made_again > 0


def test_when_every_topic_is_full_growth_becomes_another_change() -> None:
    """No fault is left out because a topic has all its partitions."""
    full = dict.fromkeys(("keyed", "plain"), PARTITIONS_MAX)
    for seed in SEEDS:
        faults = drawn_faults(seed, 6, full)
        assert all(one.topic not in full for one in faults if one.part is Part.TOPIC)
        assert len(faults) == 36


def test_a_kind_is_said_in_words() -> None:
    """The kind names the part and what is done to it."""
    assert Fault(1.0, Part.SPARK_SERVER, Harm.KILL).kind == "Spark server killed with -9"
