"""The control topics: what each must be, and what is reported of one that is not."""

import pytest

from penstock.settings.sections import TopicsSettings
from penstock.topics import SeenTopic, TopicState, compare, control_topics

WANTED = {
    topic.name.removeprefix("data-engineering-"): topic
    for topic in control_topics(TopicsSettings())
}


def test_the_eight_of_the_design() -> None:
    """Names, partitions and settings are those of the design."""
    assert sorted(WANTED) == [
        "commit",
        "consumer",
        "controller",
        "monitor",
        "query",
        "service",
        "state",
        "status",
    ]
    assert WANTED["monitor"].settings["retention.ms"] == "-1"
    assert int(WANTED["monitor"].settings["retention.bytes"]) > 0
    assert WANTED["monitor"].partitions == WANTED["service"].partitions == 1
    assert WANTED["consumer"].partitions == 1
    assert WANTED["state"].settings["cleanup.policy"] == "compact"
    assert WANTED["state"].partitions == 1
    assert WANTED["status"].settings["cleanup.policy"] == "compact,delete"
    assert WANTED["status"].settings["retention.ms"] == "-1"
    assert WANTED["commit"].partitions == 16
    assert int(WANTED["commit"].settings["retention.bytes"]) > 0
    assert WANTED["controller"].partitions == WANTED["query"].partitions == 1 + 32


def test_mailboxes_grow_ahead_of_the_consumers() -> None:
    """With consumer 40 there, mailboxes reach 32 past it; the prefix is a setting."""
    settings = TopicsSettings(prefix="mine", consumers_ahead=32)
    by_name = {topic.name: topic for topic in control_topics(settings, highest_consumer_id=40)}
    assert by_name["mine-controller"].partitions == 1 + 40 + 32
    assert by_name["mine-service"].partitions == 1


def seen(kind: str, **changes: object) -> SeenTopic:
    wanted = WANTED[kind]
    settings = {**wanted.settings, **{k: str(v) for k, v in changes.items() if k != "partitions"}}
    settings = {name.replace("_", "."): value for name, value in settings.items()}
    partitions = changes.get("partitions", wanted.partitions)
    assert isinstance(partitions, int)
    return SeenTopic(partitions, settings)


@pytest.mark.parametrize("kind", sorted(WANTED))
def test_a_topic_as_wanted_is_ok(kind: str) -> None:
    """A topic with the wanted partitions and settings gets a single `ok`."""
    assert [one.verdict for one in compare(WANTED[kind], seen(kind))] == [TopicState.OK]


def test_more_mailboxes_than_needed_are_fine() -> None:
    """A topic with too many partitions is ok: Kafka cannot shrink it."""
    assert compare(WANTED["query"], seen("query", partitions=500))[0].verdict is TopicState.OK


def test_missing_and_too_small_say_what_to_run() -> None:
    """Both findings name the command that repairs them."""
    for found, verdict in [
        (None, TopicState.MISSING),
        (seen("query", partitions=3), "too-few-partitions"),
    ]:
        (finding,) = compare(WANTED["query"], found)
        assert finding.verdict == verdict
        assert "penstock topics create" in finding.explanation


@pytest.mark.parametrize(
    ("kind", "change", "explanation"),
    [
        ("monitor", {"retention_ms": 60000}, "retention.ms=60000: set it to -1"),
        ("monitor", {"retention_bytes": -1}, "retention.bytes=-1"),
        ("monitor", {"partitions": 4}, "order matters"),
        ("service", {"partitions": 2}, "order matters"),
        ("controller", {"cleanup_policy": "compact"}, "cleanup.policy=compact: set it to delete"),
    ],
)
def test_a_topic_that_cannot_serve_says_why(
    kind: str, change: dict[str, object], explanation: str
) -> None:
    """Compacted, expiring or unordered topics are each named with what to change."""
    (finding,) = compare(WANTED[kind], seen(kind, **change))
    assert finding.verdict is TopicState.UNUSABLE
    assert explanation in finding.explanation


def test_another_bound_on_bytes_is_the_operators_choice() -> None:
    """Any positive limit on bytes is ok."""
    assert (
        compare(WANTED["monitor"], seen("monitor", retention_bytes=123))[0].verdict is TopicState.OK
    )
