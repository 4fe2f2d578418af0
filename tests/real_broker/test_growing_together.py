"""Control topics that several want to grow at the same moment."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.laboratory.broker import EmbeddedKafka
from penstock.settings import load_settings

pytestmark = pytest.mark.broker


def partitions_of(administration: Administration, name: str, expected: int) -> int:
    """What the broker reports; new topics and partitions appear a moment after they are made."""
    deadline_s = time.monotonic() + 90
    found = None
    while (found is None or found.partitions != expected) and time.monotonic() < deadline_s:
        found = administration.topics([name]).get(name)
        time.sleep(0.05)
    return 0 if found is None else found.partitions


def test_a_second_caller_finds_the_topic_grown(kafka: EmbeddedKafka) -> None:
    """Asking for fewer partitions than there are is no failure: another caller was first."""
    administration = Administration(kafka.settings)
    administration.create_topic("grown-twice", partitions=1)
    assert administration.grow_topic("grown-twice", 5)
    assert not administration.grow_topic("grown-twice", 3)
    assert not administration.grow_topic("grown-twice", 5)
    assert partitions_of(administration, "grown-twice", 5) == 5


def test_ten_consumers_made_at_once_get_their_mailboxes(kafka: EmbeddedKafka) -> None:
    """Each asks for its own number of partitions; none fails, and the topic has the most."""
    flags = {
        "kafka.bootstrap_servers": kafka.settings.bootstrap_servers,
        "topics.prefix": "grown-together",
        "topics.consumers_ahead": "1",
    }
    settings = load_settings(flags=flags, environment={}).settings
    make_control_topics(settings)
    with ThreadPoolExecutor(10) as workers:
        lines = list(
            workers.map(
                lambda number: make_control_topics(settings, highest_consumer_id=number),
                range(40, 0, -1),
            )
        )
    assert any(lines)
    assert partitions_of(Administration(settings.kafka), "grown-together-controller", 42) == 42
