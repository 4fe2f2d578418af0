"""Epochs are ordered; offset ranges join without gaps."""

import pytest

from penstock.model import Epoch, OffsetRange, TopicPartition

ORDERS = TopicPartition("orders", 0)


def test_a_newer_controllers_epoch_is_always_higher() -> None:
    """The controller's epoch is compared first, then the number."""
    assert Epoch(2, 0) > Epoch(1, 999)
    assert Epoch(2, 1) > Epoch(2, 0)
    assert max(Epoch(1, 5), Epoch(1, 4)) == Epoch(1, 5)


def test_an_epochs_text_round_trips() -> None:
    """An epoch's text parses to the same epoch."""
    assert Epoch.parse(str(Epoch(12, 7))) == Epoch(12, 7)


@pytest.mark.parametrize("text", ["", "1", "1.", ".1", "1.2.3", "-1.0", "01.2", "1.٣", "a.b"])
def test_text_that_is_no_epoch_is_refused(text: str) -> None:
    """Only two plain decimal numbers parse as an epoch."""
    with pytest.raises(ValueError, match="expected an epoch"):
        Epoch.parse(text)


@pytest.mark.parametrize("number", [-1, 10**15])
def test_numbers_that_json_readers_would_round_are_refused(number: int) -> None:
    """More than fifteen digits and negative numbers are refused."""
    with pytest.raises(ValueError, match="an epoch is made of"):
        Epoch(number, 0)
    with pytest.raises(ValueError, match="an epoch is made of"):
        Epoch(0, number)


def test_ranges_join_where_the_other_ends() -> None:
    """A range follows another only if it starts where that one ends."""
    first = OffsetRange(ORDERS, 0, 10)
    assert OffsetRange(ORDERS, 10, 12).follows(first)
    assert not OffsetRange(ORDERS, 9, 12).follows(first)
    assert not OffsetRange(TopicPartition("orders", 1), 10, 12).follows(first)
    assert len(first) == 10
    assert str(first) == "orders-0 [0, 10)"


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (5, 4), (0, 2**63)])
def test_a_range_that_kafka_cannot_have_is_refused(start: int, end: int) -> None:
    """Offsets outside 64 bits, below 0 or in the wrong order are refused."""
    with pytest.raises(ValueError, match="orders-0: offsets run"):
        OffsetRange(ORDERS, start, end)
