"""A partition's name and number are checked against Kafka's own rules."""

import pytest

from penstock.model import TopicPartition


def test_text_form_round_trips() -> None:
    """A topic may contain dashes: the last one separates the partition."""
    partition = TopicPartition("data-engineering-orders", 12)
    assert TopicPartition.parse(str(partition)) == partition


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "<b>", "x" * 250])
def test_names_that_kafka_refuses_are_refused(topic: str) -> None:
    """A name outside Kafka's alphabet can never become a partition, a path or a line of text."""
    with pytest.raises(ValueError, match="topic name"):
        TopicPartition(topic, 0)


@pytest.mark.parametrize("text", ["orders", "orders-", "-1", "orders-x", "orders--1-", "orders-²"])
def test_text_that_names_no_partition_is_refused(text: str) -> None:
    """Only topic-number parses."""
    with pytest.raises(ValueError, match=r"expected topic-partition|topic name"):
        TopicPartition.parse(text)


@pytest.mark.parametrize("number", [-1, 2**31])
def test_numbers_outside_kafkas_range_are_refused(number: int) -> None:
    """Partition numbers are 32-bit and not negative."""
    with pytest.raises(ValueError, match="partition number"):
        TopicPartition("orders", number)
