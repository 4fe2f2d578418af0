"""The group as metrics: what a scrape of a controller finds after a story."""

import pytest

from kit.controller.scraped import ScrapedStory
from kit.controller.story import SECOND_FALLS_SILENT, TWO_CONSUMERS
from kit.promtool import require_clean_metrics
from penstock.controller.core.decisions import Code, Decision
from penstock.controller.core.figures import fence_reason
from penstock.metrics import of_controller as of
from penstock.telemetry.exposition import rendered


def test_a_controller_that_does_not_lead_yet_says_only_that() -> None:
    """A standby has no group to tell of."""
    story = ScrapedStory()
    assert story.value(of.LEADING) == 0
    assert story.values(of.EPOCH) == {}


def test_a_controller_that_knows_nothing_tells_no_zeros() -> None:
    """No measurement: its age, backlogs and freshness are absent."""
    story = ScrapedStory("a controller starts with epoch 3")
    assert story.value(of.LEADING) == 1
    assert story.value(of.EPOCH) == 3
    assert story.value(of.STATE, "synchronize") == 1
    assert story.value(of.STATE, "group_management") == 0
    assert story.value(of.CONDITION, "blind") == 1
    for metric in (of.MEASUREMENT_AGE, of.GROUP_BACKLOG, of.TOPIC_FRESHNESS, of.TOPIC_BACKLOG):
        assert story.values(metric) == {}


def test_consumers_with_their_loads() -> None:
    """Assigned speed, capacity, utilisation and partitions of each; the sizes of the group."""
    story = ScrapedStory(*TWO_CONSUMERS)
    assert story.values(of.ASSIGNED) == {("1",): 80.0, ("2",): 40.0}
    assert story.values(of.CAPACITY) == {("1",): 100.0, ("2",): 100.0}
    assert story.value(of.UTILISATION, "1") == pytest.approx(0.8)
    assert story.values(of.CONSUMER_PARTITIONS) == {("1",): 2, ("2",): 1}
    assert (story.value(of.WANTED), story.value(of.READY)) == (2, 2)
    assert (story.value(of.STARTING), story.value(of.ENDING)) == (0, 0)
    assert story.value(of.GROUP_WRITE_SPEED) == 120.0
    assert story.value(of.PARTITIONS, "owned") == 3
    assert story.value(of.STARTS) == 2
    assert story.value(of.DECISIONS, "consumer_created") == 2
    assert story.values(of.PLANS) == {("unread_partition",): 1}
    assert story.values(of.REPORT_AGE).keys() == {("1",), ("2",)}
    assert story.values(of.STEP_SECONDS)[()] > 5


def test_a_new_consumer_is_starting_until_it_reports() -> None:
    """Wanted at once, ready later; one that was never heard has no age."""
    story = ScrapedStory(*TWO_CONSUMERS[:6])
    assert (story.value(of.WANTED), story.value(of.STARTING), story.value(of.READY)) == (2, 2, 0)
    assert story.value(of.PARTITIONS, "unread") == 3
    assert story.values(of.REPORT_AGE) == {}


def test_a_learned_capacity_counts() -> None:
    """In place of the setting, where consumers may show what they can."""
    story = ScrapedStory(
        "settings capacity=auto calibrated.orders=100",
        *TWO_CONSUMERS,
        "consumer 1 reports orders-0@1.1 orders-1@1.2, capacity_log_bytes_per_s=70.0",
    )
    assert story.value(of.CAPACITY, "1") == 70.0
    assert story.values(of.TOPIC_CAPACITY) == {("orders", "measured"): 70.0}
    assert story.values(of.TOPIC_CAPACITY_FOUND) == {
        ("orders", "lowest"): 70.0,
        ("orders", "highest"): 70.0,
    }


def test_a_capacity_says_how_it_is_known() -> None:
    """One that is set has no spread, because nothing was measured."""
    story = ScrapedStory(*TWO_CONSUMERS)
    assert story.values(of.TOPIC_CAPACITY) == {("orders", "set"): 100.0}
    assert story.values(of.TOPIC_CAPACITY_FOUND) == {}
    assumed = ScrapedStory("settings capacity=auto", *TWO_CONSUMERS)
    assert [source for _, source in assumed.values(of.TOPIC_CAPACITY)] == ["assumed"]


def test_times_are_those_of_the_scrape() -> None:
    """A controller that stands still gets older, and so do its measurement and its consumers."""
    story = ScrapedStory(*TWO_CONSUMERS, "the controller hears itself for 1000 ms")
    before = story.value(of.MEASUREMENT_AGE)
    assert before is not None
    assert story.value(of.SILENCE) == 0
    story.now_ms += 5_000
    assert story.value(of.SILENCE) == 5
    assert story.value(of.MEASUREMENT_AGE) == before + 5
    assert story.value(of.FRESHNESS_OBJECTIVE) == 60


def test_what_the_controller_only_counts_is_told() -> None:
    """A message of a consumer that it does not know."""
    story = ScrapedStory(*TWO_CONSUMERS, "consumer 9 reports")
    assert story.values(of.EVENTS) == {("unknown_consumer_spoke",): 1}


def test_a_move_is_timed_from_its_stop_to_its_next_start() -> None:
    """And counted when it is planned."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=10",
        "tick +500",
        "packed 1: orders-0; 2: orders-1 orders-2",
    )
    assert story.value(of.MOVES) == 1
    assert story.value(of.OPEN_MOVES) == 1
    assert story.value(of.PARTITIONS, "stopping") == 1
    assert story.values(of.HANDOVER_SECONDS) == {}
    story.tell("400 ms pass")
    story.tell("consumer 1 stopped orders-1@1.2")
    story.tell("300 ms pass")
    story.tell("consumer 2 started orders-1@1.4")
    assert story.values(of.HANDOVER_SECONDS) == {(): 1}
    (observed,) = story.store.collect().histograms[of.HANDOVER_SECONDS].values()
    assert observed.total == pytest.approx(0.7)


def test_a_stopped_partition_has_its_reason() -> None:
    """By partition and by topic; a move that ends so is not timed."""
    story = ScrapedStory(
        *TWO_CONSUMERS, "consumer 1 stopped orders-0@1.1 orders-1@1.2, schema_changed"
    )
    assert story.values(of.PARTITION_STOPPED) == {
        ("orders", "0", "schema_changed"): 1,
        ("orders", "1", "schema_changed"): 1,
    }
    assert story.values(of.STOPPED) == {("orders", "schema_changed"): 2}
    assert story.value(of.PARTITIONS, "stopped") == 2
    assert story.value(of.PARTITIONS, "unread") == 0
    assert story.value(of.CONDITION, "stopped") == 1


def test_a_partition_that_fails_on_its_way_was_not_handed_over() -> None:
    """Its consumer gives it up instead of stopping it: no duration."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=10",
        "tick +500",
        "packed 1: orders-0; 2: orders-1 orders-2",
        "consumer 1 stopped orders-1@1.2, schema_changed",
    )
    assert story.values(of.HANDOVER_SECONDS) == {}


def test_a_silent_consumer_is_fenced_with_a_reason() -> None:
    """It is an end, a fence and a decision."""
    story = ScrapedStory(*TWO_CONSUMERS, *SECOND_FALLS_SILENT)
    assert story.values(of.FENCES) == {("silent",): 1}
    assert story.value(of.ENDS, "fenced") == 1
    assert story.value(of.ENDING) == 1


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("sent no message for 7 s while the controller could read", "silent"),
        ("did not stop orders-0 within 10 ms", "not_stopping"),
        ("did not start orders-0 within 10 ms", "not_starting"),
        ("did not come up within 10 ms", "did_not_come_up"),
        ("started again 6 times without carrying anything", "restarts_in_vain"),
        ("did not answer within 10 ms", "no_answer"),
        ("shut down", "shut_down"),
        ("did what nobody foresaw", "other"),
    ],
)
def test_a_fence_has_a_reason_in_one_word(why: str, reason: str) -> None:
    """Each way in which a consumer is given up has its own."""
    text = f"consumer 12 {why}: fenced, 3 partitions to start elsewhere"
    assert fence_reason(Decision(0, Code.CONSUMER_FENCED, text, 1)) == reason


def test_backlogs_of_partitions_topics_and_the_group() -> None:
    """By the report where there is one, else by the ends of the logs; seconds at today's speed."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "logs orders-0=0..50 orders-1=0..50 orders-2=0..20",
        "speeds orders-0=40 orders-1=40 orders-2=40",
        "consumer 1 reports orders-0@1.1+50/50 orders-1@1.2+50/50, behind_records=0",
        lag_names=True,
    )
    assert story.value(of.PARTITION_BACKLOG, "orders", "0") == 0
    assert story.value(of.PARTITION_BACKLOG_SECONDS, "orders", "0") == 0
    # Consumer 2 has not said how far it is: the whole log counts.
    assert story.value(of.PARTITION_BACKLOG, "orders", "2") == 20
    assert story.value(of.PARTITION_BACKLOG_BYTES, "orders", "2") == 200
    assert story.value(of.PARTITION_BACKLOG_SECONDS, "orders", "2") == 5
    assert story.value(of.TOPIC_BACKLOG, "orders") == 20
    assert story.value(of.GROUP_BACKLOG_BYTES) == 200
    assert story.value(of.GROUP_BACKLOG_SECONDS) == pytest.approx(200 / 120)
    assert story.value(of.LAG, "orders", "2") == 20
    assert story.value(of.LAG_SECONDS, "orders", "2") == 5


def test_what_is_unknown_of_a_backlog_is_absent() -> None:
    """Nothing is written: no seconds. The size of records is unknown: no bytes either."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "logs orders-0=0..50",
        "speeds orders-0=0 orders-1=40 orders-2=40",
        "consumer 2 reports orders-2@1.3+4/9",
        lag_names=True,
    )
    assert story.value(of.PARTITION_BACKLOG, "orders", "0") == 50
    assert story.value(of.PARTITION_BACKLOG_BYTES, "orders", "0") == 500
    assert story.value(of.PARTITION_BACKLOG_SECONDS, "orders", "0") is None
    assert story.value(of.PARTITION_BACKLOG, "orders", "1") is None
    assert story.value(of.PARTITION_BACKLOG, "orders", "2") == 5
    assert story.value(of.PARTITION_BACKLOG_BYTES, "orders", "2") is None
    assert story.value(of.TOPIC_BACKLOG_BYTES, "orders") is None
    assert story.value(of.TOPIC_BACKLOG, "orders") == 55
    assert story.value(of.LAG, "orders", "0") == 50
    assert story.value(of.LAG_SECONDS, "orders", "0") is None


def test_series_of_partitions_can_be_switched_off() -> None:
    """With more partitions than allowed, topics are told and partitions are not."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "logs orders-0=0..0 orders-1=0..0 orders-2=0..0",
        "speeds orders-0=40 orders-1=40 orders-2=40",
        "logs orders-0=0..50 orders-1=0..0 orders-2=0..0",
        "speeds orders-0=40 orders-1=40 orders-2=40",
        "consumer 1 stopped orders-0@1.1, schema_changed",
        lag_names=True,
        partitions=2,
    )
    told = story.store.collect().samples
    assert [one for one in told if one.metric.is_of_partitions] == []
    assert story.value(of.TOPIC_BACKLOG, "orders") == 50
    assert story.value(of.TOPIC_FRESHNESS, "orders") is not None
    assert story.value(of.STOPPED, "orders", "schema_changed") == 1


def test_prometheus_finds_nothing_wrong_with_a_whole_scrape() -> None:
    """`promtool check metrics` is silent about the text of a group that works."""
    story = ScrapedStory(
        *TWO_CONSUMERS,
        "logs orders-0=0..50 orders-1=0..0 orders-2=0..0",
        "speeds orders-0=40 orders-1=40 orders-2=40",
        *SECOND_FALLS_SILENT,
        lag_names=True,
    )
    require_clean_metrics(rendered(story.store).decode())
