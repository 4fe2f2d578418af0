"""Long lists travel in parts: how a list is cut, and how the parts are put together again.

The assembler keeps one unfinished list per sender: parts of an older one, or of one that is
already complete, are dropped. It never waits: what is not complete when a newer one begins is gone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.messages.events import StateQueryResponse
from penstock.messages.fields import PARTITIONS_PER_MESSAGE_MAX
from penstock.messages.report import ConsumerReport
from penstock.messages.write_speed import WriteSpeedMeasurement

Row = TypeVar("Row")
PartedMessage = TypeVar("PartedMessage", StateQueryResponse, ConsumerReport, WriteSpeedMeasurement)

SENDERS_MAX = 100_000


def cut(
    rows: Sequence[Row], *, rows_max: int = PARTITIONS_PER_MESSAGE_MAX
) -> tuple[tuple[Row, ...], ...]:
    """At least one piece, if only an empty one; every piece within the limit."""
    starts = range(0, max(len(rows), 1), rows_max)
    return tuple(tuple(rows[start : start + rows_max]) for start in starts)


def in_parts(message: PartedMessage, rows_field: str) -> Iterator[PartedMessage]:
    """One message with too many rows, made by `model_construct`, as messages within the limit."""
    pieces = cut(getattr(message, rows_field))
    for number, piece in enumerate(pieces, start=1):
        changes = {rows_field: piece, "part": number, "parts": len(pieces)}
        yield message.model_copy(update=changes)


@dataclass(slots=True)
class PartAssembler(Generic[PartedMessage]):
    """Gives back a whole list when its last part has come, and None until then.

    Not frozen: it is the reader's memory, owned by one loop.
    """

    _newest: dict[int, tuple[int, int]] = field(default_factory=dict)
    _parts: dict[int, dict[int, PartedMessage]] = field(default_factory=dict)

    def add(self, message: PartedMessage) -> tuple[PartedMessage, ...] | None:
        sender, order = _identity(message)
        newest = self._newest.get(sender)
        if newest is None and len(self._newest) >= SENDERS_MAX:
            return None
        if newest is not None and order < newest:
            return None
        if order != newest:
            self._newest[sender] = order
            self._parts[sender] = {}
        parts = self._parts.get(sender)
        if parts is None:  # this one was complete already
            return None
        parts[message.part] = message
        expected = range(1, message.parts + 1)
        if any(number not in parts or parts[number].parts != message.parts for number in expected):
            return None
        del self._parts[sender]
        return tuple(parts[number] for number in expected)


def _identity(
    message: StateQueryResponse | ConsumerReport | WriteSpeedMeasurement,
) -> tuple[int, tuple[int, int]]:
    """The sender, and which of its lists this part belongs to: higher is newer."""
    if isinstance(message, WriteSpeedMeasurement):
        return 0, (message.monitor_incarnation, message.sequence)
    if isinstance(message, ConsumerReport):
        return message.consumer_id, (message.incarnation, message.report_number)
    return message.consumer_id, (message.incarnation, message.query_number)
