"""How old the newest state of a log is that the lake has whole."""

from kit.controller.scraped import ScrapedStory
from kit.controller.story import TWO_CONSUMERS
from penstock.controller.core.freshness import MARKS_MAX, Freshness, known_offsets
from penstock.controller.core.inputs import LogExtent
from penstock.metrics import of_controller as of
from penstock.model import TopicPartition

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def measured(freshness: Freshness, at_ms: int, end: int, offset: int | None) -> None:
    """One measurement of A, and where its ledger stands."""
    offsets = {} if offset is None else {A: offset}
    freshness.measured(at_ms, {A: LogExtent(0, end)}, offsets)


def test_a_partition_that_is_carried_to_its_end_stays_fresh() -> None:
    """Also while nothing is written to it for an hour."""
    freshness = Freshness(60_000)
    for at_ms in range(0, 3_600_000, 1_000):
        measured(freshness, at_ms, end=9, offset=9)
    assert freshness.age_ms(A, 3_600_000) == 1_000


def test_it_is_as_old_as_the_newest_end_that_the_lake_has_reached() -> None:
    """Between two ends the older one counts."""
    freshness = Freshness(60_000)
    measured(freshness, 0, end=10, offset=10)
    measured(freshness, 1_000, end=20, offset=10)
    measured(freshness, 2_000, end=30, offset=25)
    assert freshness.age_ms(A, 2_500) == 1_500
    measured(freshness, 3_000, end=40, offset=30)
    assert freshness.age_ms(A, 3_500) == 1_500
    measured(freshness, 4_000, end=40, offset=40)
    assert freshness.age_ms(A, 4_500) == 500


def test_it_grows_while_nothing_is_carried() -> None:
    """A consumer that does nothing, or none at all."""
    freshness = Freshness(60_000)
    measured(freshness, 0, end=10, offset=10)
    for at_ms in range(1_000, 601_000, 1_000):
        measured(freshness, at_ms, end=10 + at_ms, offset=10)
    assert freshness.age_ms(A, 600_000) == 600_000


def test_a_long_backlog_is_remembered_with_few_marks_and_never_too_young() -> None:
    """While it is worked off, the age falls, and is at most a little more than the truth."""
    freshness = Freshness(60_000)
    measured(freshness, 0, end=0, offset=0)
    for second in range(1, 1_001):
        measured(freshness, second * 1_000, end=second * 10, offset=0)
    assert len(freshness._awaited[A]) <= MARKS_MAX + 1
    ages = []
    for second in range(1_001, 1_051):
        carried = (second - 1_000) * 200
        measured(freshness, second * 1_000, end=10_000, offset=carried)
        true_age_s = second - carried / 10
        age_s = (freshness.age_ms(A, second * 1_000) or 0) / 1_000
        if carried < 10_000:
            assert true_age_s <= age_s <= true_age_s * 1.15 + 21
        ages.append(age_s)
    assert ages[-1] == 0


def test_what_a_new_controller_does_not_know_is_absent() -> None:
    """Until the lake has caught up once, or it is certain that it is over the objective."""
    freshness = Freshness(60_000)
    measured(freshness, 0, end=10, offset=None)
    assert freshness.age_ms(A, 60_000) is None
    assert freshness.age_ms(A, 61_000) == 61_000
    assert freshness.age_ms(B, 61_000) is None
    measured(freshness, 70_000, end=12, offset=10)
    assert freshness.age_ms(A, 70_000) == 70_000
    measured(freshness, 71_000, end=12, offset=12)
    assert freshness.age_ms(A, 71_000) == 0


def test_a_partition_that_is_gone_is_forgotten() -> None:
    """Whether or not it was carried to its end."""
    freshness = Freshness(0)
    freshness.measured(0, {A: LogExtent(0, 5), B: LogExtent(0, 5)}, {A: 5})
    freshness.measured(1_000, {}, {})
    assert freshness.age_ms(A, 9_000) is None
    assert freshness.age_ms(B, 9_000) is None


def test_a_scrape_tells_it_for_partitions_and_topics() -> None:
    """The worst partition is the topic's; a partition that nobody reads counts too."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=0 behind_records=0",
        "logs orders-0=0..9 orders-1=0..20",
        "speeds orders-0=40 orders-1=40 orders-2=40",
    )
    story.now_ms += 2_000
    assert story.values(of.PARTITION_FRESHNESS) == {("orders", "0"): 2.0}
    # Records wait in the second, nobody knows since when: an alert looks at the backlog instead.
    assert story.value(of.TOPIC_FRESHNESS, "orders") is None
    assert story.metrics.freshness()["freshness_s"] is None
    story.now_ms += 70_000
    # Of the second it is not known when the lake last had all: but it is over the objective.
    assert story.values(of.PARTITION_FRESHNESS) == {("orders", "0"): 72.0, ("orders", "1"): 72.0}
    assert story.value(of.TOPIC_FRESHNESS, "orders") == 72.0
    assert story.metrics.freshness() == {"freshness_s": None, "freshness_at_least_s": 72.0}
    story.tell("logs orders-0=0..9 orders-1=0..9")
    story.tell("speeds orders-0=40 orders-1=40 orders-2=40")
    assert story.values(of.PARTITION_FRESHNESS) == {("orders", "0"): 0.0, ("orders", "1"): 0.0}
    assert story.value(of.TOPIC_FRESHNESS, "orders") == 0.0


def test_the_newest_word_about_an_offset_counts() -> None:
    """A report over what was said at the start; nothing of a log that was made again."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=0 behind_records=0",
    )
    assert story.state is not None
    assert known_offsets(story.state) == {A: 9, B: 9}
    for line in (
        "consumer 1 stopped orders-0@1.1 orders-1@1.2, schema_changed",
        "logs orders-0=0..3 orders-1=0..12",
        "speeds orders-0=40 orders-1=40 orders-2=40",
    ):
        story.tell(line)
    # Its ledger stands behind the end of the log: it is another log.
    assert A not in known_offsets(story.state)


def test_the_oldest_partition_stands_for_the_group() -> None:
    """While it is unknown of one in which records wait there is no figure, and never a small one.

    9.6 s were told while other partitions had waited for minutes, and for 43 s since a start what
    had waited for 20 minutes was 43 s old.
    """
    freshness = Freshness(60_000)
    assert freshness.oldest_ms(0) is None
    freshness.measured(0, {A: LogExtent(0, 9), B: LogExtent(0, 9)}, {A: 9, B: 0})
    assert freshness.oldest_ms(500) is None
    assert freshness.oldest_ms(100_000) is None
    freshness.measured(1_000, {A: LogExtent(0, 20), B: LogExtent(0, 9)}, {A: 9, B: 9})
    freshness.measured(2_000, {A: LogExtent(0, 30), B: LogExtent(0, 9)}, {A: 9, B: 9})
    assert freshness.oldest_ms(2_500) == 2_500


def test_what_is_certain_of_the_oldest_is_known_before_its_age() -> None:
    """`all is well` was told of a partition that had certainly waited for an hour."""
    freshness = Freshness(60_000)
    assert freshness.oldest_at_least_ms(0) is None
    for second in range(3_600):
        extents = {A: LogExtent(0, 9), B: LogExtent(0, 500 + second)}
        freshness.measured(1_000 * second, extents, {A: 9, B: 100})
    assert freshness.oldest_ms(3_600_000) is None
    assert freshness.oldest_at_least_ms(3_600_000) == 3_600_000
    extents = {A: LogExtent(0, 9), B: LogExtent(0, 4_099)}
    freshness.measured(3_600_000, extents, {A: 9, B: 4_099})
    assert freshness.oldest_at_least_ms(3_600_500) == 500


def test_a_topic_is_late_when_one_partition_certainly_is() -> None:
    """Also while it is unknown of another: an alert must not wait for that."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=0 behind_records=0",
        "logs orders-0=0..9",
        "speeds orders-0=40 orders-1=40 orders-2=40",
    )
    story.now_ms += 70_000
    story.tell("logs orders-0=0..20 orders-1=0..20")
    story.tell("speeds orders-0=40 orders-1=40 orders-2=40")
    assert story.values(of.PARTITION_FRESHNESS) == {("orders", "0"): 70.0}
    assert story.value(of.TOPIC_FRESHNESS, "orders") == 70.0
