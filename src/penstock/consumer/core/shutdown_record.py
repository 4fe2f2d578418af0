"""What a consumer keeps for its next incarnation: how it ended, and how far its mailbox was read.

An incarnation begins by writing "running" and ends, when it ends in order, by writing "controlled".
One that finds "running" knows that the last one was cut short; one that finds nothing readable
trusts nothing. Offsets always come from the lake, so a wrong answer costs time and no records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.messages import PreviousShutdown
from penstock.model import TopicPartition
from penstock.model.epoch import INTEGER_MAX

RUNNING = "running"
CONTROLLED = "controlled"


@dataclass(frozen=True, slots=True)
class ShutdownRecord:
    """The number of an incarnation, and what is known of the one before."""

    incarnation: int
    previous_shutdown: PreviousShutdown
    mailbox: Mapping[TopicPartition, int] = field(default_factory=dict)


def begin_incarnation(
    stored: Mapping[str, Any] | None, *, is_broken: bool, now_ms: int
) -> ShutdownRecord:
    """`stored` is the content of the state file; None if there is none or it cannot be used."""
    if stored is None:
        known = PreviousShutdown.UNKNOWN if is_broken else PreviousShutdown.NONE
        return ShutdownRecord(now_ms, known)
    before = stored.get("incarnation")
    if not isinstance(before, int) or not 0 < before < INTEGER_MAX:
        return ShutdownRecord(now_ms, PreviousShutdown.UNKNOWN)
    is_controlled = stored.get("state") == CONTROLLED
    return ShutdownRecord(
        incarnation=max(before + 1, now_ms),
        previous_shutdown=(
            PreviousShutdown.CONTROLLED if is_controlled else PreviousShutdown.UNCONTROLLED
        ),
        mailbox=_mailbox(stored.get("mailbox")),
    )


def shutdown_record_content(
    record: ShutdownRecord, *, state: str, mailbox: Mapping[TopicPartition, int]
) -> dict[str, Any]:
    """The content of the state file."""
    return {
        "state": state,
        "incarnation": record.incarnation,
        "mailbox": {str(one): mailbox[one] for one in sorted(mailbox)},
    }


def _mailbox(stored: Any) -> dict[TopicPartition, int]:
    """The positions that make sense; others are left out."""
    found: dict[TopicPartition, int] = {}
    if isinstance(stored, Mapping):
        for name, offset in stored.items():
            if isinstance(offset, int) and offset >= 0:
                try:
                    found[TopicPartition.parse(str(name))] = offset
                except ValueError:
                    continue  # not a partition: this mailbox is then read from its bound
    return found
