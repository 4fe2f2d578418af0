"""An incarnation knows how the one before it ended, and never takes its number again."""

from typing import Any

import pytest

from penstock.consumer.core.shutdown_record import (
    CONTROLLED,
    RUNNING,
    ShutdownRecord,
    begin_incarnation,
    shutdown_record_content,
)
from penstock.messages import PreviousShutdown
from penstock.model import TopicPartition

MAIL = {TopicPartition("data-engineering-controller", 3): 17}


def test_the_first_incarnation_follows_nothing() -> None:
    """Without a file there was none before; with a broken file that is unknown."""
    assert begin_incarnation(None, is_broken=False, now_ms=5) == ShutdownRecord(
        5, PreviousShutdown.NONE
    )
    assert begin_incarnation(None, is_broken=True, now_ms=5) == ShutdownRecord(
        5, PreviousShutdown.UNKNOWN
    )


@pytest.mark.parametrize(
    ("state", "known"),
    [
        (CONTROLLED, PreviousShutdown.CONTROLLED),
        (RUNNING, PreviousShutdown.UNCONTROLLED),
        ("something else", PreviousShutdown.UNCONTROLLED),
    ],
)
def test_what_was_written_is_what_is_known(state: str, known: PreviousShutdown) -> None:
    """Only "controlled" is an orderly end; the mailbox is read on from where it was."""
    stored = shutdown_record_content(
        ShutdownRecord(100, PreviousShutdown.NONE), state=state, mailbox=MAIL
    )
    record = begin_incarnation(stored, is_broken=False, now_ms=50)
    assert record == ShutdownRecord(101, known, mailbox=MAIL)
    assert begin_incarnation(stored, is_broken=False, now_ms=5000).incarnation == 5000


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"incarnation": "7"},
        {"incarnation": -1},
        {"incarnation": 10**15},
        {"incarnation": None, "state": CONTROLLED},
    ],
)
def test_content_that_makes_no_sense_is_not_trusted(stored: dict[str, Any]) -> None:
    """The end of the last incarnation then counts as unknown."""
    record = begin_incarnation(stored, is_broken=False, now_ms=9)
    assert record == ShutdownRecord(9, PreviousShutdown.UNKNOWN)


def test_a_mailbox_position_that_makes_no_sense_is_left_out() -> None:
    """The other positions still count."""
    stored = {"incarnation": 4, "mailbox": {"no name": 1, "a-0": -3, "b-1": "x", "c-2": 8}}
    assert begin_incarnation(stored, is_broken=False, now_ms=1).mailbox == {
        TopicPartition("c", 2): 8
    }
    assert (
        begin_incarnation({"incarnation": 4, "mailbox": 3}, is_broken=False, now_ms=1).mailbox == {}
    )
