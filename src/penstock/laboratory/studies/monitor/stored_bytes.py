"""Counts the log bytes of the first n records of a partition, from the segment files.

The study compares the monitor with this count, because it uses neither the monitor nor its request.
Only the headers of record batches are read.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

_HEADER = struct.Struct(">qiibIhi")
_BYTES_BEFORE_LENGTH_COUNTS = 12


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """For each batch: the records and bytes up to its end."""

    records: tuple[int, ...]
    total_bytes: tuple[int, ...]

    def up_to(self, records: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bytes of the first `records` records; records of one batch count the same."""
        return np.asarray(np.interp(records, (0, *self.records), (0, *self.total_bytes)))


def stored_bytes(log_directory: Path) -> StoredBytes:
    """Read one partition's directory. The log must begin at offset 0."""
    records: list[int] = []
    sizes: list[int] = []
    total = 0
    for segment in sorted(log_directory.glob("*.log")):
        with segment.open("rb") as file:
            while len(header := file.read(_HEADER.size)) == _HEADER.size:
                base, length, _, _, _, _, last_delta = _HEADER.unpack(header)
                if length <= 0:
                    break
                size = length + _BYTES_BEFORE_LENGTH_COUNTS
                total += size
                records.append(base + last_delta + 1)
                sizes.append(total)
                file.seek(size - _HEADER.size, 1)
    return StoredBytes(tuple(records), tuple(sizes))
