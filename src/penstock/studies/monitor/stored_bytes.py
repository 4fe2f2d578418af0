"""How many bytes of log the first n records of a partition take, read from the segment files.

This is the study's yardstick: a path to the log's bytes that passes neither through the monitor nor
through the request it makes. Only the headers of record batches are read.
"""

import struct
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct(">qiibIhi")
_BYTES_BEFORE_LENGTH_COUNTS = 12


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Batch by batch: how many records and bytes there are up to its end."""

    records: tuple[int, ...]
    total_bytes: tuple[int, ...]

    def up_to(self, records: float) -> float:
        """Bytes of the first `records` records; within a batch they weigh the same."""
        index = bisect_right(self.records, records)
        before_records = self.records[index - 1] if index else 0
        before_bytes = self.total_bytes[index - 1] if index else 0
        if index == len(self.records):
            return float(before_bytes)
        part = (records - before_records) / (self.records[index] - before_records)
        return before_bytes + part * (self.total_bytes[index] - before_bytes)


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
