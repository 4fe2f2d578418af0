"""Bytes a record, read off batch headers."""

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kafka_io.record_batches import bytes_and_records

# A busy machine is no defect of the subject.
unhurried = settings(deadline=None)


def batch(offset: int, records: int, body_bytes: int, *, magic: int = 2) -> bytes:
    body = struct.pack(">ibIhi", 0, magic, 0, 0, records - 1) + b"x" * body_bytes
    return struct.pack(">qi", offset, len(body)) + body


def test_whole_batches_are_counted() -> None:
    """Two batches of ten and five records, with all their overhead."""
    stored = batch(0, 10, 500) + batch(10, 5, 100)
    assert bytes_and_records(stored) == (len(stored), 15)


def test_a_cut_batch_ends_the_count() -> None:
    """A fetch is cut at its limit; what is not whole does not count."""
    whole = batch(0, 10, 500)
    assert bytes_and_records(whole + batch(10, 5, 100)[:-1]) == (len(whole), 10)
    assert bytes_and_records(batch(0, 5, 100, magic=1)) == (0, 0)


@unhurried
@given(st.binary(max_size=400))
def test_any_bytes_are_survived(stored: bytes) -> None:
    """Nonsense gives some count, never an error, never an endless loop."""
    total, records = bytes_and_records(stored)
    assert 0 <= total <= len(stored)
    assert records >= 0
