"""What the headers of stored record batches say: how many bytes a record takes, and who wrote it.

Only headers are read, so compressed batches count with their compressed size and no content is
decoded. Every offset of a batch counts as a record, as in a difference of end offsets.
"""

import struct
from dataclasses import dataclass

# base offset, batch length, leader epoch, magic, checksum, attributes, last offset delta
_HEADER = struct.Struct(">qiibIhi")
# the same, then first and last timestamp, and the id of the producer
_HEADER_WITH_PRODUCER = struct.Struct(">qiibIhiqqq")
_BYTES_BEFORE_LENGTH_COUNTS = 12
_MAGIC = 2
_IS_TRANSACTIONAL, _IS_CONTROL = 0x10, 0x20
# The id of a producer that has none.
NOBODY = -1


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """Who wrote the records from `first` to `last`."""

    first: int
    last: int
    producer_id: int
    is_transactional: bool

    def has(self, offset: int) -> bool:
        return self.first <= offset <= self.last


def bytes_and_records(stored: bytes | memoryview) -> tuple[int, int]:
    """Bytes and records of all whole batches, up to a truncated one or one of an older format."""
    position = total_bytes = total_records = 0
    while position + _HEADER.size <= len(stored):
        _, length, _, magic, _, _, last_delta = _HEADER.unpack_from(stored, position)
        size = length + _BYTES_BEFORE_LENGTH_COUNTS
        if magic != _MAGIC or length <= 0 or last_delta < 0 or position + size > len(stored):
            break
        total_bytes += size
        total_records += last_delta + 1
        position += size
    return total_bytes, total_records


def batch_writers(stored: bytes | memoryview) -> list[BatchWriter]:
    """The writer of each batch whose header is there, markers of transactions left out."""
    position = 0
    found = []
    while position + _HEADER_WITH_PRODUCER.size <= len(stored):
        first, length, _, magic, _, attributes, last_delta, _, _, producer_id = (
            _HEADER_WITH_PRODUCER.unpack_from(stored, position)
        )
        if magic != _MAGIC or length <= 0 or last_delta < 0:
            break
        if not attributes & _IS_CONTROL:
            # No transaction is without a producer, though a forged header may say so.
            is_transactional = bool(attributes & _IS_TRANSACTIONAL) and producer_id != NOBODY
            found.append(BatchWriter(first, first + last_delta, producer_id, is_transactional))
        position += length + _BYTES_BEFORE_LENGTH_COUNTS
    return found
