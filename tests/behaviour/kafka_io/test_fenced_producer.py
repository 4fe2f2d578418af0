"""What a controller says that the broker has fenced."""

import pytest

from penstock.kafka_io.leading_producer import FencedError, LeadingProducer, Outgoing
from penstock.model import ControlTopicNames
from penstock.settings.sections import KafkaSettings


def test_who_is_fenced_names_the_transactional_id() -> None:
    """Two groups with different prefixes may make the same one, and fence each other for ever."""
    name = ControlTopicNames("orders").transactional_id("eu-penstock")
    assert name == ControlTopicNames("orders-eu").transactional_id("penstock")
    producer = LeadingProducer(KafkaSettings(), name, has_successor=lambda: True)
    with pytest.raises(FencedError) as raised:
        producer.send([Outgoing("commands", 0, b"x", ())])
    assert "orders-eu-penstock-controller" in raised.value.remedy
