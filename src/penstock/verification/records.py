"""Records as the check compares them: offsets, and a checksum of each record's key and value."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Checksums: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


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
    """Records of one partition. Without checksums only their offsets can be compared.

    `with_content` marks those that have a checksum; None when all have one, or none has.
    """

    offsets: Offsets
    checksums: Checksums | None = None
    with_content: Mask | None = None

    @classmethod
    def none(cls) -> "Records":
        return cls(np.array([], dtype=np.int64), np.array([], dtype=np.uint64))

    @classmethod
    def joined(cls, parts: Sequence["Records"]) -> "Records":
        """All parts as one. Parts without checksums stay so, and the others keep theirs."""
        if not parts:
            return cls.none()
        offsets = np.concatenate([part.offsets for part in parts])
        if all(part.checksums is None for part in parts):
            return cls(offsets)
        checksums = [
            np.zeros(part.offsets.size, np.uint64) if part.checksums is None else part.checksums
            for part in parts
        ]
        return cls(
            offsets, np.concatenate(checksums), np.concatenate([part.has_content for part in parts])
        )

    @property
    def has_content(self) -> Mask:
        if self.with_content is not None:
            return self.with_content
        return np.full(self.offsets.size, self.checksums is not None)

    def without_empty(self) -> "Records":
        """Without those whose key and value are both missing: a dead letter may lack them."""
        if self.checksums is None:
            return self
        return self.where(self.checksums != np.uint64(checksum(None, None)))

    def where(self, chosen: Any) -> "Records":
        checksums = None if self.checksums is None else self.checksums[chosen]
        mask = None if self.with_content is None else self.with_content[chosen]
        return Records(self.offsets[chosen], checksums, mask)

    def changed_from(self, original: "Records") -> int | None:
        """How many of these records differ from the original of the same offset.

        None when one side has no checksums. Offsets that the original lacks, and records that have
        no checksum, are not counted.
        """
        if self.checksums is None or original.checksums is None:
            return None
        order = np.argsort(original.offsets)
        offsets, checksums = original.offsets[order], original.checksums[order]
        place = np.searchsorted(offsets, self.offsets)
        there = place < offsets.size
        there[there] = offsets[place[there]] == self.offsets[there]
        there &= self.has_content
        return int((checksums[place[there]] != self.checksums[there]).sum())
