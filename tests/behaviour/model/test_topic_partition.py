"""A partition's name and number are checked against Kafka's own rules."""

import os
import pickle
import subprocess
import sys

import pytest

from penstock.model import TopicPartition


def test_text_form_round_trips() -> None:
    """A topic may contain dashes: the last one separates the partition."""
    partition = TopicPartition("data-engineering-orders", 12)
    assert TopicPartition.parse(str(partition)) == partition


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "<b>", "x" * 250])
def test_names_that_kafka_refuses_are_refused(topic: str) -> None:
    """A topic name outside Kafka's alphabet is refused."""
    with pytest.raises(ValueError, match="topic name"):
        TopicPartition(topic, 0)


@pytest.mark.parametrize("text", ["orders", "orders-", "-1", "orders-x", "orders--1-", "orders-²"])
def test_text_that_names_no_partition_is_refused(text: str) -> None:
    """Only text of the form topic-number parses."""
    with pytest.raises(ValueError, match=r"expected topic-partition|topic name"):
        TopicPartition.parse(text)


@pytest.mark.parametrize("number", [-1, 2**31])
def test_numbers_outside_kafkas_range_are_refused(number: int) -> None:
    """A partition number that is negative or over 32 bits is refused."""
    with pytest.raises(ValueError, match="partition number"):
        TopicPartition("orders", number)


def test_a_pickled_partition_is_found_again_in_another_process() -> None:
    """A pickled partition is found in a dictionary of another process."""
    partition = TopicPartition("orders", 7)
    raw = pickle.dumps({partition: "found"})
    script = (
        "import pickle, sys\n"
        "from penstock.model import TopicPartition\n"
        "held = pickle.load(sys.stdin.buffer)\n"
        "print({**held}[TopicPartition('orders', 7)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=raw,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "17"},
        check=False,
    )
    assert done.stdout == b"found\n", done.stderr
    assert hash(partition) == hash(TopicPartition("orders", 7))
