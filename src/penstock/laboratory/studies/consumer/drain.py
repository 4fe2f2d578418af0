"""Fills topics, lets one consumer drain them, and measures its speed."""

import itertools
import os
import secrets
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.log_sizes import LogSizeReader
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.load import RecordForm
from penstock.laboratory.load.records import RecordMaker
from penstock.laboratory.studies.consumer.commits import records_per_s
from penstock.laboratory.studies.consumer.studied_consumer import StudiedConsumer
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings

_numbers = itertools.count(1)
DRAIN_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Filling:
    """The records in Kafka before the consumer starts."""

    topics: int = 1
    partitions_per_topic: int = 24
    total_bytes: int = 200_000_000
    record_bytes: int = 1000
    compression: str = "none"
    compressible: bool = False


@dataclass(frozen=True, slots=True)
class Filled:
    filling: Filling
    partitions: tuple[TopicPartition, ...]
    ends: dict[TopicPartition, int]
    log_bytes: int

    @property
    def records(self) -> int:
        return sum(self.ends.values())


@dataclass(frozen=True, slots=True)
class Drained:
    records_per_s: float
    decoded_mb_per_s: float
    log_mb_per_s: float
    # The capacity that the consumer itself reported.
    reported_capacity_mb_per_s: float | None
    commit_ms: float
    batches: int


def fill(kafka: KafkaSettings, filling: Filling) -> Filled:
    """Create the topics and write the records evenly."""
    administration = Administration(kafka)
    names = [f"study-{os.getpid()}-{next(_numbers)}" for _ in range(filling.topics)]
    for name in names:
        administration.create_topic(name, partitions=filling.partitions_per_topic)
    places = [
        TopicPartition(name, number)
        for name in names
        for number in range(filling.partitions_per_topic)
    ]
    each = max(1, filling.total_bytes // filling.record_bytes // len(places))
    form = RecordForm(filling.record_bytes, compressible=filling.compressible)
    maker = RecordMaker(form, secrets.token_hex(4), seed=1)
    producer = RecordProducer(
        kafka,
        **{
            "compression.type": filling.compression,
            "queue.buffering.max.messages": 200_000,
            "batch.size": 512 * 1024,
        },
    )
    at_ms = time.time_ns() // 1_000_000
    for number in range(each):
        for place in places:
            key, value = maker.record(place, number, at_ms)
            producer.send(place.topic, place.partition, value, key=key)
        producer.poll()
    if producer.flush(60):
        raise PenstockError("The broker did not acknowledge all records.")
    with LogSizeReader(kafka) as sizes:
        log_bytes = sum(sizes.read_bytes(names).values())
    return Filled(filling, tuple(places), dict.fromkeys(places, each), log_bytes)


def drain(settings: Settings, filled: Filled, **consumer: Any) -> Drained:
    """Let one new consumer with its own lake carry everything."""
    with tempfile.TemporaryDirectory(prefix="penstock-study-") as folder:
        place = Path(folder)
        changed = settings.model_copy(
            update={
                "topics": settings.topics.model_copy(
                    update={"prefix": f"study-control-{os.getpid()}-{next(_numbers)}"}
                ),
                "lake": settings.lake.model_copy(update={"root": str(place / "lake")}),
                "consumer": settings.consumer.model_copy(update=consumer),
            }
        )
        with StudiedConsumer(changed, place) as studied:
            studied.command_start(filled.partitions)
            studied.wait_until_carried(filled.ends, DRAIN_TIMEOUT_S)
            reports = list(studied.reports)
        speed = records_per_s(place / "consumer.log")
    cycles = [one.cycle for one in reports if one.cycle is not None and one.cycle.batches]
    batches = sum(one.batches for one in cycles)
    capacities = [one.capacity_log_bytes_per_s for one in reports]
    known = [one for one in capacities if one is not None]
    return Drained(
        records_per_s=speed,
        decoded_mb_per_s=speed * filled.filling.record_bytes / 1e6,
        log_mb_per_s=speed * filled.log_bytes / filled.records / 1e6,
        reported_capacity_mb_per_s=known[-1] / 1e6 if known else None,
        commit_ms=sum(one.commit_ms for one in cycles) / max(1, batches),
        batches=batches,
    )
