"""Reads named ranges of partitions and nothing else: assigned, committed records only.

A range is done when a record at or behind its end is seen, or the broker says that the log ends
there: markers of transactions and compacted records leave holes, so records are not counted. A
record that is gone, and a broker that stays silent, are errors.
"""

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from penstock.spark_worker.work import RangeToRead

# A consumer stays connected for the next batch of the same topics. A worker may serve several.
KEPT_CONSUMERS = 8
# As much as is turned into columns at once.
CHUNK_BYTES = 8 * 2**20
CHUNK_RECORDS_MAX = 20_000
CHUNK_RECORDS_FIRST = 1_000
# How long a chunk may take to fill up. It also bounds how much a chunk of huge records can hold.
POLL_S = 0.05
_GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}

_kept: OrderedDict[tuple[object, ...], Any] = OrderedDict()


class RecordsGoneError(Exception):
    """The broker no longer has a record of the range."""


class KafkaSilentError(Exception):
    """No record arrived for too long."""


class AssignedReader:
    """One batch's ranges; `chunks` yields lists of messages until all of them are read."""

    def __init__(
        self,
        kafka: Mapping[str, str | int | float | bool],
        name: str,
        ranges: Sequence[RangeToRead],
        silence_s_max: float,
    ) -> None:
        self._key = (name, *sorted(kafka.items()))
        self._consumer = _consumer(self._key, kafka)
        self._ends: dict[tuple[str, int], int] = {}
        self._ranges = ranges
        self._silence_s_max = silence_s_max

    def chunks(self) -> Iterator[list[Any]]:
        """Every record of the ranges, in the order of its partition."""
        try:
            # The same partition twice cannot be assigned: pieces of one range come one by one.
            for ranges in _rounds(self._ranges):
                yield from self._read(ranges)
            self._consumer.unassign()
        except BaseException:
            # Whatever it was in the middle of, the next batch begins with a new one.
            _kept.pop(self._key, None)
            self._consumer.close()
            raise

    def _read(self, ranges: Sequence[RangeToRead]) -> Iterator[list[Any]]:
        self._ends = {(one.topic, one.partition): one.end for one in ranges}
        self._consumer.assign(
            [TopicPartition(one.topic, one.partition, one.start) for one in ranges]
        )
        left = sum(len(one) for one in ranges)
        wanted = CHUNK_RECORDS_FIRST
        heard_s = time.monotonic()
        while self._ends:
            found = self._consumer.consume(max(1, min(wanted, left)), timeout=POLL_S)
            rows = self._sorted_out(found)
            now_s = time.monotonic()
            if rows:
                heard_s = now_s
                left -= len(rows)
                held = sum(len(one) for one in rows)
                wanted = max(1, min(CHUNK_RECORDS_MAX, CHUNK_BYTES * len(rows) // max(1, held)))
                yield rows
            elif now_s - heard_s > self._silence_s_max:
                raise KafkaSilentError(f"Kafka did not give {self._missing()} for too long")

    def _missing(self) -> str:
        (topic, partition), end = min(self._ends.items())
        return f"{topic}-{partition} up to {end} (and {len(self._ends) - 1} more)"

    def _sorted_out(self, found: Sequence[Any]) -> list[Any]:
        """The records of the ranges; what lies behind them ends its range."""
        rows, ended = [], set()
        ends = self._ends
        for message in found:
            where = (message.topic(), message.partition())
            error = message.error()
            end = ends.get(where)
            if error is not None:
                self._heed(error, message)
                is_over = error.code() == KafkaError._PARTITION_EOF
                if is_over and end is not None and message.offset() >= end:
                    ended.add(where)
            elif end is not None:
                offset = message.offset()
                if offset < end:
                    rows.append(message)
                if offset >= end - 1:
                    ended.add(where)
        if ended:
            for where in ended:
                del ends[where]
            self._consumer.incremental_unassign([TopicPartition(*where) for where in sorted(ended)])
        return rows

    def _heed(self, error: KafkaError, message: Any) -> None:
        if error.code() in _GONE:
            raise RecordsGoneError(
                f"{message.topic()}-{message.partition()} has no record at the offset asked for"
            )
        if error.fatal():
            raise KafkaSilentError(f"the Kafka client failed: {error.str()}")


def _rounds(ranges: Sequence[RangeToRead]) -> list[list[RangeToRead]]:
    rounds: list[list[RangeToRead]] = []
    seen: dict[tuple[str, int], int] = {}
    for one in ranges:
        number = seen.get((one.topic, one.partition), 0)
        seen[one.topic, one.partition] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(one)
    return rounds


def _consumer(key: tuple[object, ...], kafka: Mapping[str, str | int | float | bool]) -> Any:
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    while len(_kept) >= KEPT_CONSUMERS:
        _kept.popitem(last=False)[1].close()
    _kept[key] = Consumer(
        {
            **kafka,
            "group.id": "penstock-reader",  # joined by nobody
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # Fetched ahead, all partitions together. When it is full the library would look again
            # only after a second, and every large batch would stand still for it.
            "queued.max.messages.kbytes": 32_768,
            "fetch.queue.backoff.ms": 2,
            "fetch.wait.max.ms": 50,
        }
    )
    return _kept[key]
