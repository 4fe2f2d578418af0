"""Writes one record in Kafka's own protocol: bytes that no client library sends.

Libraries take a header's name as text. In the log it is bytes, and any writer may put any there.
"""

import socket
import struct
import time
from collections.abc import Sequence

from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

_PRODUCE, _VERSION = 0, 3
_IS_TRANSACTIONAL = 0x10
# Unknown topic or partition, leader not available, not the leader: of a topic that was just made.
_NO_LEADER_YET = {3, 5, 6}
_POLYNOMIAL = 0x82F63B78
_ANSWER_TIMEOUT_S = 60.0
RawHeaders = Sequence[tuple[bytes, bytes | None]]


def produce_raw(
    kafka: KafkaSettings,
    place: TopicPartition,
    value: bytes | None,
    *,
    timestamp_ms: int,
    key: bytes | None = None,
    headers: RawHeaders = (),
    transactional_id: str | None = None,
) -> int:
    """Write through the broker that leads the partition; returns the record's offset.

    With a transactional id the batch says that it is of a transaction, and of no producer.
    """
    attributes = 0 if transactional_id is None else _IS_TRANSACTIONAL
    batch = _batch(key, value, headers, timestamp_ms, attributes)
    under = struct.pack(">h", -1) if transactional_id is None else _text(transactional_id)
    body = b"".join(
        [
            struct.pack(">hhi", _PRODUCE, _VERSION, 1),
            _text("raw"),
            under,
            struct.pack(">hii", -1, round(_ANSWER_TIMEOUT_S * 1000), 1),
            _text(place.topic),
            struct.pack(">iii", 1, place.partition, len(batch)),
            batch,
        ]
    )
    until_s = time.monotonic() + _ANSWER_TIMEOUT_S
    while True:
        error, offset = _answer(kafka, place, struct.pack(">i", len(body)) + body)
        if not error:
            return offset
        if error not in _NO_LEADER_YET or time.monotonic() > until_s:
            raise ValueError(f"the broker refuses the record with error {error}")
        time.sleep(0.1)


def _answer(kafka: KafkaSettings, place: TopicPartition, request: bytes) -> tuple[int, int]:
    """The error, 0 if there is none, and the offset."""
    host, _, port = kafka.bootstrap_servers.partition(":")
    with socket.create_connection((host, int(port)), timeout=_ANSWER_TIMEOUT_S) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as answers:
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
    # Correlation, number of topics, the topic's name, number of partitions, its number.
    begin = 4 + 4 + len(_text(place.topic)) + 4 + 4
    error, offset = struct.unpack_from(">hq", answer, begin)
    return error, offset


def _batch(
    key: bytes | None,
    value: bytes | None,
    headers: RawHeaders,
    timestamp_ms: int,
    attributes: int,
) -> bytes:
    """A record batch of the format that Kafka has had since 0.11, with one record."""
    named = b"".join(_sized(name) + _sized(content) for name, content in headers)
    body = b"\0" + _varint(0) + _varint(0) + _sized(key) + _sized(value)
    body += _varint(len(headers)) + named
    record = _varint(len(body)) + body
    checked = struct.pack(">hiqqqhii", attributes, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1)
    checked += record
    rest = struct.pack(">ibI", -1, 2, _checksum(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _sized(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    left = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    made = bytearray()
    while left > 127:
        made.append(left & 127 | 128)
        left >>= 7
    made.append(left)
    return bytes(made)


def _checksum(content: bytes) -> int:
    """CRC-32C, bit by bit: records here are small."""
    sum_ = 0xFFFFFFFF
    for byte in content:
        sum_ ^= byte
        for _ in range(8):
            sum_ = sum_ >> 1 ^ (_POLYNOMIAL if sum_ & 1 else 0)
    return sum_ ^ 0xFFFFFFFF
