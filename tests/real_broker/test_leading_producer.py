"""The controller's producer on a real broker that stands still in the middle of a transaction."""

import threading
import time
from collections.abc import Callable

import pytest

from penstock.errors import PenstockError
from penstock.kafka_io import leading_producer
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.leading_producer import FencedError, LeadingProducer, Outgoing
from penstock.laboratory.broker import EmbeddedKafka

pytestmark = pytest.mark.broker

MESSAGE = Outgoing("commands", 0, b"x", ())


def test_a_lost_connection_takes_leadership_from_nobody(
    broker_jars: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commit and abort found no answer: it goes on when nobody followed, and ends when one did."""
    monkeypatch.setattr(leading_producer, "TRANSACTION_TIMEOUT_S", 2.0)
    followed = threading.Event()
    with EmbeddedKafka() as kafka:
        Administration(kafka.settings).create_topic("commands", partitions=1)
        old = LeadingProducer(kafka.settings, "leader", has_successor=followed.is_set)
        _lead_when_it_answers(old)

        def lose_the_connection() -> None:
            for node in kafka.nodes:
                kafka.pause(node)
            with pytest.raises(PenstockError) as raised:
                old.send([MESSAGE])
            assert not isinstance(raised.value, FencedError)
            for node in kafka.nodes:
                kafka.resume(node)

        lose_the_connection()
        _send_when_it_answers(old)

        lose_the_connection()
        new = LeadingProducer(kafka.settings, "leader")
        _lead_when_it_answers(new)
        followed.set()
        with pytest.raises(FencedError):
            _send_when_it_answers(old)
        _send_when_it_answers(new)  # it still leads
        with pytest.raises(FencedError):
            _send_when_it_answers(old)


def _send_when_it_answers(producer: LeadingProducer) -> None:
    _until_it_answers(lambda: producer.send([MESSAGE]))


def _lead_when_it_answers(producer: LeadingProducer) -> None:
    _until_it_answers(lambda: producer.lead(MESSAGE))


def _until_it_answers(ask: Callable[[], object], within_s: float = 180.0) -> None:
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            ask()
        except FencedError:
            raise
        except PenstockError:
            assert time.monotonic() < deadline_s, "the broker does not answer again"
        else:
            return
