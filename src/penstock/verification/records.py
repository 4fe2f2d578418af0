"""Records as the check compares them: offsets, and a checksum of each record's key and value."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Checksums: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


def checksum(key: bytes | None, value: bytes | None) -> int:
    """Eight bytes of a hash. Lengths go in as well; a missing value differs from an empty one."""
    content = blake2b(digest_size=8)
    for part in (key, value):
        content.update(b"-" if part is None else b"%d:" % len(part))
        content.update(part or b"")
    return int.from_bytes(content.digest(), "big")


def checksums_of(pairs: Iterable[tuple[bytes | None, bytes | None]], count: int) -> Checksums:
    return np.fromiter((checksum(*pair) for pair in pairs), dtype=np.uint64, count=count)


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one partition. Without checksums only their offsets can be compared."""

    offsets: Offsets
    checksums: Checksums | None = None

    @classmethod
    def none(cls) -> "Records":
        return cls(np.array([], dtype=np.int64), np.array([], dtype=np.uint64))

    @classmethod
    def joined(cls, parts: Sequence["Records"]) -> "Records":
        """All parts as one; without checksums if one of the parts has none."""
        if not parts:
            return cls.none()
        known = [part.checksums for part in parts if part.checksums is not None]
        return cls(
            np.concatenate([part.offsets for part in parts]),
            np.concatenate(known) if len(known) == len(parts) else None,
        )

    def where(self, chosen: Any) -> "Records":
        checksums = None if self.checksums is None else self.checksums[chosen]
        return Records(self.offsets[chosen], checksums)

    def changed_from(self, original: "Records") -> int | None:
        """How many of these records differ from the original of the same offset.

        None when one side has no checksums. Offsets that the original lacks are not counted.
        """
        if self.checksums is None or original.checksums is None:
            return None
        order = np.argsort(original.offsets)
        offsets, checksums = original.offsets[order], original.checksums[order]
        place = np.searchsorted(offsets, self.offsets)
        there = place < offsets.size
        there[there] = offsets[place[there]] == self.offsets[there]
        return int((checksums[place[there]] != self.checksums[there]).sum())
