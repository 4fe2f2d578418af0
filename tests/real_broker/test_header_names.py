"""A record whose header name is not UTF-8 ends nobody who reads its topic."""

import time

import pytest

from kit.kafka.raw_produce import produce_raw
from kit.lake.lake import new_topic_name
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.committed_records import all_records
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import TopicPartition

pytestmark = pytest.mark.broker


def test_a_header_name_that_is_not_text_ends_no_reader(kafka: EmbeddedKafka) -> None:
    """Such a record is given without headers, and the one after it with its own."""
    place = TopicPartition(new_topic_name("names"), 0)
    Administration(kafka.settings).create_topic(place.topic, partitions=1)
    now_ms = round(time.time() * 1000)
    for name in (b"\xff\xfe", b"text"):
        produce_raw(kafka.settings, place, b"v", headers=[(name, b"1")], timestamp_ms=now_ms)
    found = [(one.value, one.headers) for one in all_records(kafka.settings, place)]
    assert found == [(b"v", ()), (b"v", (("text", b"1"),))]
