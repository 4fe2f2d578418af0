"""How many bytes of log the first n records of a partition take, read from the segment files.

This is the study's yardstick: a path to the log's bytes that passes neither through the monitor nor
through the request it makes. Only the headers of record batches are read.
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
    """Batch by batch: how many records and bytes there are up to its end."""

    records: tuple[int, ...]
    total_bytes: tuple[int, ...]

    def up_to(self, records: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bytes of the first so many records; within a batch they weigh the same."""
        return np.asarray(np.interp(records, (0, *self.records), (0, *self.total_bytes)))


def stored_bytes(log_directory: Path) -> StoredBytes:
    """Of one partition's directory; its log begins at offset 0."""
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
