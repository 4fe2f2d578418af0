"""The group's status as records of `<prefix>-status`: cut into parts, and joined again. Pure.

A status is one JSON object, compressed, in one part or a few: Kafka limits a record. Each part says
in its headers which controller wrote it (its epoch), the number of the status, and which part of
how many it is. Its key is the same in every status, so that compaction keeps only the newest.

A controller that was replaced may write once more before it knows. So of two, the status of the
higher epoch counts, unless the other one came much later: control topics that were made anew begin
with low epochs again.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.model.json_text import read_json

EVENT_TYPE = b"GroupStatus"
# Compressed; with a key and headers well below Kafka's usual 1 MiB for a record.
PART_BYTES_MAX = 512 * 1024
PARTS_MAX = 64
STATUS_BYTES_MAX = 256 * 2**20
# Level 6 takes three times as long and saves a tenth.
_COMPRESSION_LEVEL = 1
# A controller that was replaced has noticed it by then.
REPLACED_WITHIN_MS = 30_000


@dataclass(frozen=True, slots=True)
class StatusPart:
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


def status_parts(group: str, controller_epoch: int, number: int, text: str) -> Iterator[StatusPart]:
    """The records of one status; `number` rises with each that a controller writes."""
    packed = zlib.compress(text.encode(), _COMPRESSION_LEVEL)
    parts = -(-len(packed) // PART_BYTES_MAX)
    if parts > PARTS_MAX:
        raise ValueError(f"the status has {parts} parts of {PART_BYTES_MAX} bytes")
    for part in range(1, parts + 1):
        figures = {"controller_epoch": controller_epoch, "number": number, "part": part}
        yield StatusPart(
            f"{group}/{part}".encode(),
            packed[(part - 1) * PART_BYTES_MAX : part * PART_BYTES_MAX],
            (
                ("event_type", EVENT_TYPE),
                ("group", group.encode()),
                *((name, str(figure).encode()) for name, figure in figures.items()),
                ("parts", str(parts).encode()),
            ),
        )


@dataclass(frozen=True, slots=True)
class WholeStatus:
    """All parts of one status, not unpacked yet: most are overtaken before anybody looks."""

    controller_epoch: int
    number: int
    written_unix_ms: int
    packed: bytes

    def unpacked(self) -> dict[str, Any]:
        """What the controller wrote; ValueError when it is no status."""
        opened = zlib.decompressobj()
        try:
            text = opened.decompress(self.packed, STATUS_BYTES_MAX)
        except zlib.error as error:
            raise ValueError(f"it cannot be decompressed: {error}") from error
        if not opened.eof:
            raise ValueError("it is cut short, or too large")
        found = read_json(text)
        if isinstance(found, dict) and isinstance(found.get("status"), dict):
            return found
        raise ValueError("it has no status")

    def counts_more_than(self, other: "WholeStatus | None") -> bool:
        if other is None or self.controller_epoch == other.controller_epoch:
            return other is None or self.number > other.number
        newer, older = self, other
        if self.controller_epoch < other.controller_epoch:
            newer, older = other, self
        is_overtaken = older.written_unix_ms > newer.written_unix_ms + REPLACED_WITHIN_MS
        return (older if is_overtaken else newer) is self


@dataclass(slots=True)
class StatusAssembler:
    """Joins the parts that one group's controllers wrote. Mutable, owned by one reader."""

    group: str
    newest: WholeStatus | None = None
    # By controller epoch, the status that is not complete yet: its number, and its parts.
    _unfinished: dict[int, tuple[int, dict[int, bytes]]] = field(default_factory=dict)

    def add(
        self,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
        written_unix_ms: int,
    ) -> bool:
        """Whether `newest` is another one now. A record that is no part of a status is skipped."""
        named = dict(headers)
        if value is None or named.get("event_type") != EVENT_TYPE:
            return False
        if named.get("group") != self.group.encode():
            return False
        figures = _figures(named)
        if figures is None:
            return False
        epoch, number, part, parts = figures
        kept_number, kept = self._unfinished.get(epoch, (number, {}))
        if kept_number != number:
            kept = {}
        kept[part] = value
        # Two controllers at most write at a time.
        self._unfinished = {**dict(list(self._unfinished.items())[-1:]), epoch: (number, kept)}
        if any(one not in kept for one in range(1, parts + 1)):
            return False
        packed = b"".join(kept[one] for one in range(1, parts + 1))
        whole = WholeStatus(epoch, number, written_unix_ms, packed)
        if not whole.counts_more_than(self.newest):
            return False
        self.newest = whole
        return True


def _figures(headers: Mapping[str, bytes | None]) -> tuple[int, int, int, int] | None:
    """Epoch, number, part and parts; None when they are none."""
    try:
        epoch, number, part, parts = (
            int(headers.get(name) or b"")
            for name in ("controller_epoch", "number", "part", "parts")
        )
    except ValueError:
        return None
    return (epoch, number, part, parts) if 1 <= part <= parts <= PARTS_MAX else None
