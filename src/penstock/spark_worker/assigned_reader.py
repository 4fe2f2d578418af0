"""Reads named ranges of partitions and nothing else: assigned, committed records only.

A range ends when a record at or after its end is seen, or when the broker reports the end of the
log there. Records are not counted, because transaction markers and compaction leave gaps. A broker
that stays silent is an error. A record that is gone, or that this client cannot read, ends its own
partition alone, which is then in `unreadable`.
"""

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from penstock.spark_worker.work import RangeToRead

# Why a second reader beside `kafka_io.partition_reader`: this one runs in Spark's Python workers,
# where `spark_worker` imports nothing else of ours, and keeps its consumers for the next batch.
# A consumer stays connected for the next batch of the same topics. A worker may keep several.
KEPT_CONSUMERS = 8
# How much is turned into columns at once.
CHUNK_BYTES = 8 * 2**20
CHUNK_RECORDS_MAX = 20_000
CHUNK_RECORDS_FIRST = 1_000
# How long a chunk may take to fill. It also bounds how many huge records a chunk can hold.
POLL_S = 0.05
_NEVER = 2**63
# Waiting does not help: the record is gone, or this client cannot take it or may not. The client
# also calls an offset gone whose record is damaged: only the log's start and end tell them apart.
_UNREADABLE = {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._BAD_COMPRESSION,
    KafkaError._BAD_MSG,
    KafkaError._NOT_IMPLEMENTED,
    KafkaError._UNSUPPORTED_FEATURE,
    KafkaError.INVALID_MSG,
    KafkaError.MSG_SIZE_TOO_LARGE,
    # The driver's other way meets the same, and its error names the right.
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}

# A topic, and messages of one of its partitions.
Run = tuple[str, list[Any]]

_kept: OrderedDict[tuple[object, ...], Any] = OrderedDict()


class UnreadableRecordError(Exception):
    """The workers cannot read a record; the driver asks whether the broker still has it."""


class KafkaSilentError(Exception):
    """No record arrived for too long."""


class AssignedReader:
    """Reads one batch's ranges; `chunks` yields their messages until all are read."""

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
        self._last_error = ""
        self._ranges = ranges
        # Why a partition was not read to its end.
        self.unreadable: dict[tuple[str, int], str] = {}
        self._silence_s_max = silence_s_max

    def chunks(self) -> Iterator[list[Run]]:
        """Every record of the ranges, in the order of its partition."""
        try:
            # A partition cannot be assigned twice: pieces of one range are read one after another.
            for ranges in _rounds(self._ranges):
                yield from self._read(
                    [one for one in ranges if (one.topic, one.partition) not in self.unreadable]
                )
            self._consumer.unassign()
        except BaseException:
            # Its state is unknown: the next batch starts with a new consumer.
            _kept.pop(self._key, None)
            self._consumer.close()
            raise

    def _read(self, ranges: Sequence[RangeToRead]) -> Iterator[list[Run]]:
        self._ends = {(one.topic, one.partition): one.end for one in ranges}
        self._consumer.assign(
            [TopicPartition(one.topic, one.partition, one.start) for one in ranges]
        )
        left = sum(len(one) for one in ranges)
        wanted = CHUNK_RECORDS_FIRST
        last_record_s = time.monotonic()
        while self._ends:
            found = self._consumer.consume(max(1, min(wanted, left)), timeout=POLL_S)
            runs = self._runs_of(found)
            now_s = time.monotonic()
            if runs:
                last_record_s = now_s
                left -= sum(len(run) for _, run in runs)
                wanted = _records_a_chunk(found)
                yield runs
            elif now_s - last_record_s > self._silence_s_max:
                reason = f"; the last error was: {self._last_error}" if self._last_error else ""
                raise KafkaSilentError(
                    f"Kafka did not give {self._missing()} within {self._silence_s_max:g} s{reason}"
                )

    def _missing(self) -> str:
        (topic, partition), end = min(self._ends.items())
        others = f" (and {len(self._ends) - 1} more)" if len(self._ends) > 1 else ""
        return f"{topic}-{partition} up to {end}{others}"

    def _runs_of(self, found: Sequence[Any]) -> list[Run]:
        """The records that belong to the ranges, by partition; a later record ends its range."""
        ended = {where for where in map(self._ended_by, found) if where is not None}
        runs = []
        for where, group in groupby((one for one in found if one.error() is None), key=_place):
            end = self._ends.get(where)
            if end is None:
                continue  # fetched ahead, after the end of its range
            run = list(group)
            if run[-1].offset() >= end - 1:
                ended.add(where)
                run = [one for one in run if one.offset() < end]
            if run:
                runs.append((where[0], run))
        if ended:
            for where in ended:
                del self._ends[where]
            self._consumer.incremental_unassign([TopicPartition(*where) for where in sorted(ended)])
        return runs

    def _ended_by(self, message: Any) -> tuple[str, int] | None:
        """The partition whose range ends here with its log; raises for errors."""
        error = message.error()
        if error is None:
            return None
        if error.fatal():
            raise KafkaSilentError(f"the Kafka client failed: {error.str()}")
        where = _place(message)
        offset = message.offset()  # None if the error is about no certain record
        is_behind_the_range = offset is not None and offset >= self._ends.get(where, _NEVER)
        if error.code() in _UNREADABLE:
            # Also when it seems to lie behind the range: a range that ends here by mistake would
            # lose records, and the other way costs little.
            if where not in self._ends:
                return None
            self.unreadable[where] = error.str()
            return where
        if error.code() != KafkaError._PARTITION_EOF:
            self._last_error = error.str()  # it may pass; if not, the timeout names it
            return None
        return where if is_behind_the_range else None


def _place(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()


def _records_a_chunk(found: Sequence[Any]) -> int:
    """How many make a chunk, judged by every sixteenth of these."""
    sample = found[::16]
    size = max(1, sum(map(len, sample)))
    return max(1, min(CHUNK_RECORDS_MAX, CHUNK_BYTES * len(sample) // size))


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
    _kept[key] = Consumer(consumer_properties(kafka))
    return _kept[key]


def consumer_properties(
    kafka: Mapping[str, str | int | float | bool],
) -> dict[str, str | int | float | bool]:
    """What the user set holds, except where exactness depends on a property."""
    chosen: dict[str, str | int | float | bool] = {
        # Fetched ahead, for all partitions together. When this is full the library would wait
        # a second before it fetches again, and every large batch would wait with it.
        "queued.max.messages.kbytes": 32_768,
        "fetch.queue.backoff.ms": 2,
        "fetch.wait.max.ms": 50,
        # Per partition and fetch. What is fetched after a range's end is thrown away, and with
        # many partitions ranges are small.
        "max.partition.fetch.bytes": 262_144,
        # Only a bound. A record that is larger than its fetch comes all the same, and one that was
        # compressed is given up where the guess of its length passes this.
        "receive.message.max.bytes": 2**31 - 1,
        **kafka,
    }
    return {
        **chosen,
        "group.id": "penstock-reader",  # required, but no group is joined
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
