"""Splits long lists into several messages, and joins the parts again.

The assembler keeps one unfinished list per sender. Every incarnation of a monitor or a consumer is
a sender of its own: a monitor is heard again after a younger one has come and gone, and a forged
part of a later incarnation silences no consumer. It drops parts of an older list and of a complete
one. When a newer list begins, an unfinished older one is discarded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from penstock.messages.events import StateQueryResponse
from penstock.messages.fields import PARTITIONS_PER_MESSAGE_MAX
from penstock.messages.report import ConsumerReport
from penstock.messages.write_speed import WriteSpeedMeasurement
from penstock.model.consumer_id import CONSUMER_ID_MAX

Row = TypeVar("Row")
# The number of a consumer, 0 for a monitor, and its incarnation.
Sender: TypeAlias = tuple[int, int]
PartedMessage = TypeVar("PartedMessage", StateQueryResponse, ConsumerReport, WriteSpeedMeasurement)

# Every restart is a new sender, so the one that was silent longest is forgotten.
SENDERS_MAX = CONSUMER_ID_MAX
MONITORS_MAX = 8


def cut(
    rows: Sequence[Row], *, rows_max: int = PARTITIONS_PER_MESSAGE_MAX
) -> tuple[tuple[Row, ...], ...]:
    """Split into pieces within the limit; at least one piece, which may be empty."""
    starts = range(0, max(len(rows), 1), rows_max)
    return tuple(tuple(rows[start : start + rows_max]) for start in starts)


def in_parts(message: PartedMessage, rows_field: str) -> Iterator[PartedMessage]:
    """Split a message with too many rows, made by `model_construct`, into several messages.

    Each part of a consumer's message takes one sequence number, starting with the message's own.
    """
    pieces = cut(getattr(message, rows_field))
    for number, piece in enumerate(pieces, start=1):
        changes: dict[str, object] = {rows_field: piece, "part": number, "parts": len(pieces)}
        if not isinstance(message, WriteSpeedMeasurement):
            changes["sequence"] = message.sequence + number - 1
        yield message.model_copy(update=changes)


def joined(parts: Sequence[PartedMessage], rows_field: str) -> PartedMessage:
    """Join the parts into one message, which may be too long to send."""
    rows = tuple(row for part in parts for row in getattr(part, rows_field))
    last = max(parts, key=lambda part: part.part)
    return last.model_copy(update={rows_field: rows, "part": 1, "parts": 1})


@dataclass(slots=True)
class PartAssembler(Generic[PartedMessage]):
    """Returns all parts when the last one arrives, and None until then.

    It is mutable state, owned by one reader.
    """

    _newest: dict[Sender, int] = field(default_factory=dict)
    _parts: dict[Sender, dict[int, PartedMessage]] = field(default_factory=dict)

    def add(self, message: PartedMessage) -> tuple[PartedMessage, ...] | None:
        sender, order = _identity(message)
        newest = self._newest.pop(sender, None)
        if newest is not None:
            self._newest[sender] = newest  # the last in order is who was heard last
        else:
            is_monitor = isinstance(message, WriteSpeedMeasurement)
            self._forget(MONITORS_MAX if is_monitor else SENDERS_MAX)
        if newest is not None and order < newest:
            return None
        if order != newest:
            self._newest[sender] = order
            self._parts[sender] = {}
        parts = self._parts.get(sender)
        if parts is None:  # this list was already complete
            return None
        parts[message.part] = message
        expected = range(1, message.parts + 1)
        if any(number not in parts or parts[number].parts != message.parts for number in expected):
            return None
        del self._parts[sender]
        return tuple(parts[number] for number in expected)

    def _forget(self, senders_max: int) -> None:
        """Make room for one more; called before it is added."""
        while len(self._newest) >= senders_max:
            sender = next(iter(self._newest))
            del self._newest[sender]
            self._parts.pop(sender, None)


def _identity(
    message: StateQueryResponse | ConsumerReport | WriteSpeedMeasurement,
) -> tuple[Sender, int]:
    """The sender, and the number of the list that the part belongs to; higher is newer."""
    if isinstance(message, WriteSpeedMeasurement):
        return (0, message.monitor_incarnation), message.sequence
    sender = (message.consumer_id, message.incarnation)
    if isinstance(message, ConsumerReport):
        return sender, message.report_number
    return sender, message.query_number
