"""Records that a broker takes and a reader may stumble over: partitions of their own for each kind.

Every record is kept as it was sent, with the offset and the time that the broker gave it, so that
rows of the lake can be compared with it field by field.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from kit.kafka.raw_produce import produce_raw
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

MB = 1_000_000
# Old times must not make a record old: nothing here is removed by its age.
_KEPT = {"retention.ms": "-1"}
ANY_TIME = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
LARGE = {"max.message.bytes": str(100 * MB)}
HUGE, HUGE_BEFORE = "huge", "huge-before"
COMPACTED, GROWS, NOT_TEXT = "compacted", "grows", "not-text"
NOT_TEXT_AND_LATE = "not-text-and-late"
# Cases with the same needs share a topic, so that few tables are written.
TOPIC_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "large": LARGE,
    HUGE: LARGE,
    HUGE_BEFORE: LARGE,
    "recompressed": {"compression.type": "zstd"},
    "any-time": ANY_TIME,
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    COMPACTED: {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
    },
    NOT_TEXT: {},
    NOT_TEXT_AND_LATE: ANY_TIME,
    GROWS: {},
    "empty": {},
    "transformed": {},
}
OPEN = "open transaction"
TRANSFORMATIONS = {"transformed": "kit.consumer.transformations:decode"}
CREATE_TIME, LOG_APPEND_TIME = 0, 1
HOURS_2_MS = 7_200_000
_FLUSH_S = 60.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A record as the broker took it. `timestamp_type` counts as Java does."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]
    timestamp_ms: int
    timestamp_type: int


@dataclass(slots=True)
class CaseLog:
    """One case's partitions: what they must give to a reader of committed records."""

    kafka: KafkaSettings
    topic: str
    partitions: range
    visible: dict[tuple[int, int], Sent] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    open_transaction: tuple[Producer, dict[tuple[int, int], Sent]] | None = None

    def producer(self, **properties: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "message.max.bytes": 100 * MB,
                **{name.replace("_", "."): value for name, value in properties.items()},
            }
        )

    def send(self, *records: Mapping[str, Any], producer: Producer | None = None) -> dict[Any, Any]:
        """Send and wait; what was taken is visible unless a transaction hides it."""
        sender = producer or self.producer()
        taken: dict[tuple[int, int], Sent] = {}
        for record in records:
            told = partial(self._delivered, taken, record)
            partition = self.partitions[record.get("partition", 0)]
            sender.produce(self.topic, **{**record, "partition": partition}, on_delivery=told)
        assert sender.flush(_FLUSH_S) == 0
        if producer is None:
            self.visible |= taken
        return taken

    def send_raw(self, headers: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> None:
        partition = self.partitions[0]
        offset = produce_raw(
            self.kafka,
            TopicPartition(self.topic, partition),
            b"raw",
            headers=headers,
            timestamp_ms=timestamp_ms,
        )
        self.visible[partition, offset] = Sent(
            None, b"raw", tuple(headers), timestamp_ms, CREATE_TIME
        )

    def end_transaction(self) -> None:
        """Commit the transaction that was left open."""
        if self.open_transaction is not None:
            producer, hidden = self.open_transaction
            producer.commit_transaction(_FLUSH_S)
            self.visible |= hidden
            self.open_transaction = None

    def _delivered(
        self,
        taken: dict[tuple[int, int], Sent],
        record: Mapping[str, Any],
        error: KafkaError | None,
        message: Message,
    ) -> None:
        if error is not None:
            self.refused.add(error.name())
            return
        kind, time_ms = message.timestamp()
        headers = tuple((name.encode(), value) for name, value in record.get("headers", ()))
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        taken[partition, offset] = Sent(
            record.get("key"), record.get("value"), headers, time_ms, kind - 1
        )


Fill = Callable[[CaseLog], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of record: its name is a line of the table in the documents."""

    name: str
    fill: Fill
    topic: str = "plain"
    partitions: int = 1


def of(*records: Mapping[str, Any]) -> Fill:
    def fill(log: CaseLog) -> None:
        log.send(*records)

    return fill


def _codec(name: str, log: CaseLog) -> None:
    values = [b"%s record %d, much like the one before it" % (name.encode(), n) for n in range(200)]
    records = [{"key": b"%d" % n, "value": value} for n, value in enumerate(values)]
    log.visible |= log.send(*records, producer=log.producer(compression_codec=name))


def _compressed(size_bytes: int, log: CaseLog) -> None:
    record = {"value": b"ab" * (size_bytes // 2)}
    log.visible |= log.send(record, producer=log.producer(compression_codec="zstd"))


def _one_by_one(times_ms: Sequence[int], log: CaseLog) -> None:
    """Each in a batch of its own: in one batch such times would overflow their differences."""
    for time_ms in times_ms:
        log.send({"value": b"at %d" % time_ms, "timestamp": time_ms})


def _future(log: CaseLog) -> None:
    _one_by_one([round(time.time() * 1000) + HOURS_2_MS, 2**63 - 1], log)


def _transaction(log: CaseLog) -> Producer:
    # It may stay open for as long as both ways take on a busy machine.
    name, open_ms = f"{log.topic}-{log.partitions[0]}", 600_000
    producer = log.producer(transactional_id=name, transaction_timeout_ms=open_ms)
    producer.init_transactions(_FLUSH_S)
    producer.begin_transaction()
    return producer


def _committed(log: CaseLog) -> None:
    producer = _transaction(log)
    taken = log.send(*[{"value": b"committed"}] * 5, producer=producer)
    producer.commit_transaction(_FLUSH_S)
    log.visible |= taken


def _aborted(log: CaseLog) -> None:
    log.send({"value": b"before"})
    producer = _transaction(log)
    log.send(*[{"value": b"aborted"}] * 5, producer=producer)
    producer.abort_transaction(_FLUSH_S)
    log.send({"value": b"after"})


def _only_aborted(log: CaseLog) -> None:
    producer = _transaction(log)
    log.send(*[{"value": b"aborted"}] * 5, producer=producer)
    producer.abort_transaction(_FLUSH_S)


def _open(log: CaseLog) -> None:
    log.send({"value": b"before"})
    producer = _transaction(log)
    hidden = log.send(*[{"value": b"open"}] * 5, producer=producer)
    # A record behind an open transaction waits with it.
    hidden |= log.send({"value": b"behind"}, producer=log.producer())
    log.open_transaction = producer, hidden


def _compacted(log: CaseLog) -> None:
    """Old values of the same keys and a tombstone; the test waits until the cleaner was there."""
    for number in range(3):
        log.send(*[{"key": b"%d" % key, "value": b"round %d" % number} for key in range(20)])
        time.sleep(0.15)
    log.send({"key": b"0", "value": None})
    time.sleep(0.15)
    log.send({"key": b"last", "value": b"opens a new segment"})


def _raw(headers: Sequence[tuple[bytes, bytes | None]], times_ms: Sequence[int] = ()) -> Fill:
    def fill(log: CaseLog) -> None:
        for time_ms in times_ms or [round(time.time() * 1000)]:
            log.send_raw(headers, time_ms)
        log.send({"value": b"an ordinary neighbour"})

    return fill


_NAMES = ((b"\xff\xfe", b"1"), (b"text", b"2"))
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CASES: tuple[Case, ...] = (
    *(Case(f"compressed with {name}", partial(_codec, name)) for name in _CODECS),
    Case(
        "compressed with gzip, then with zstd by the broker",
        partial(_codec, "gzip"),
        "recompressed",
    ),
    Case("value of 0 bytes", of({"value": b""})),
    Case("value of 1 byte", of({"value": b"\0"})),
    Case("value of 1 MB", of({"value": bytes(range(250)) * 4000}), "large"),
    Case("value of 8 MB", of({"value": bytes(range(250)) * 32_000}), "large"),
    Case("value of 64 MB", of({"value": bytes(range(250)) * 256_000}), HUGE),
    Case("value of 64 MB that zstd makes small", partial(_compressed, 64 * MB), HUGE_BEFORE),
    Case("value of 2 MB where the topic allows 1 MB", of({"value": bytes(2 * MB)})),
    Case("key of 1 MB", of({"key": bytes(MB), "value": b"v"}), "large"),
    Case("no key", of({"value": b"v"})),
    Case("empty key", of({"key": b"", "value": b"v"})),
    Case("tombstone: a key without a value", of({"key": b"k", "value": None})),
    Case("neither key nor value", of({"value": None})),
    Case("key and value that are not text", of({"value": bytes(range(256)), "key": b"\xff\0"})),
    Case("several headers of one name", of({"headers": [("a", b"1"), ("a", b"2"), ("a", b"1")]})),
    Case("header without a value or a name", of({"headers": [("a", None), ("", b"")]})),
    Case("1,000 headers", of({"headers": [(f"name {n}", b"%d" % n) for n in range(1000)]})),
    Case("header of 1 MB", of({"headers": [("a", bytes(MB))]}), "large"),
    Case("header name that is not UTF-8", _raw(_NAMES), NOT_TEXT),
    Case("header name with a zero byte", _raw([(b"a\0b", b"1")])),
    Case(
        "header name that is not UTF-8, with timestamp 2^63 - 1",
        _raw(_NAMES, [2**63 - 1]),
        NOT_TEXT_AND_LATE,
    ),
    Case("timestamp 2^63 - 1", partial(_one_by_one, [2**63 - 1]), "any-time"),
    Case("timestamp -2^63", partial(_one_by_one, [-(2**63)]), "any-time"),
    Case("timestamp in microseconds", partial(_one_by_one, [1_790_000_000_000_000]), "any-time"),
    Case("timestamp -1, which means none", partial(_one_by_one, [-1]), "any-time"),
    Case("timestamp 0 and just before it", _raw((), [0, -2]), "any-time"),
    Case("timestamp 2 hours ahead or 2^63 - 1, with the broker's usual limits", _future),
    Case("timestamp -2^63, with the broker's usual limits", partial(_one_by_one, [-(2**63)])),
    Case(
        "any timestamp, with LogAppendTime",
        partial(_one_by_one, [2**63 - 1, 1, -(2**63)]),
        "append-time",
    ),
    Case("committed transaction", _committed),
    Case("aborted transaction between two records", _aborted),
    Case("nothing but an aborted transaction", _only_aborted),
    Case(OPEN, _open),
    Case("compacted log", _compacted, COMPACTED),
    Case("empty partitions beside a full one", of({"value": b"v", "partition": 1}), partitions=3),
    Case("topic without a record", of(), "empty", partitions=2),
    Case(
        "partitions added in mid-batch",
        of(*[{"value": b"%d" % n, "partition": n % 2} for n in range(6)]),
        GROWS,
        partitions=2,
    ),
    Case(
        "value that the transformation marks undecodable",
        of({"value": b'{"id": "a"}'}, {"value": b"\xff"}),
        "transformed",
    ),
)


@dataclass(slots=True)
class Corpus:
    """All cases in Kafka."""

    kafka: KafkaSettings
    logs: dict[str, CaseLog] = field(default_factory=dict)

    def fill(self) -> None:
        """The compacted log first: its cleaner works while the others are written."""
        next_partitions = dict.fromkeys(TOPIC_SETTINGS, 0)
        for case in CASES:
            first = next_partitions[case.topic]
            next_partitions[case.topic] += case.partitions
            partitions = range(first, next_partitions[case.topic])
            self.logs[case.name] = CaseLog(self.kafka, case.topic, partitions)
        administration = Administration(self.kafka)
        for topic, settings in TOPIC_SETTINGS.items():
            administration.create_topic(
                topic, partitions=next_partitions[topic], settings={**_KEPT, **settings}
            )
        for case in sorted(CASES, key=lambda case: case.topic != COMPACTED):
            case.fill(self.logs[case.name])

    def log_of(self, topic: str) -> CaseLog:
        """The log of the one case that has this topic to itself."""
        (log,) = (log for log in self.logs.values() if log.topic == topic)
        return log

    def grow(self) -> None:
        """Add a partition, with records, to the topic that grows."""
        log = self.log_of(GROWS)
        Administration(self.kafka).grow_topic(GROWS, len(log.partitions) + 1)
        log.partitions = range(len(log.partitions) + 1)
        # On a busy machine the broker names the new partition a moment later.
        new = TopicPartition(GROWS, log.partitions[-1])
        RecordProducer(self.kafka).wait_until_known([new])
        log.send(*[{"value": b"grown", "partition": log.partitions[-1]}] * 3)
