"""How many bytes of log a record takes, from the headers of stored record batches.

Only headers are read, so compressed batches count with their compressed size and no content is
decoded. Every offset of a batch counts as a record, as in a difference of end offsets.
"""

import struct

# base offset, batch length, leader epoch, magic, checksum, attributes, last offset delta
_HEADER = struct.Struct(">qiibIhi")
_BYTES_BEFORE_LENGTH_COUNTS = 12
_MAGIC = 2


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
