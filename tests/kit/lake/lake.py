"""A topic, a lake and a pipeline between them, for tests on real parts."""

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from penstock.kafka_io.administration import Administration
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import BatchResult, Pipeline, PlannedRange, Writer
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings, LakeSettings, SparkSettings
from penstock.verification import VerificationResult, verify

# What a broker is given for an answer: its machine may be busy.
ANSWERS_WITHIN_S = 120
_numbers = itertools.count(1)


def new_topic_name(story: str) -> str:
    """A name no other test uses, also in another run on the same broker."""
    return f"{story}-{os.getpid()}-{next(_numbers)}"


def lake_settings(kafka: KafkaSettings, place: Path, master: str, **lake: Any) -> Settings:
    return Settings(
        kafka=kafka,
        lake=LakeSettings(**{"root": str(place), **lake}),
        spark=SparkSettings(master=master),
    )


def produce(
    kafka: KafkaSettings,
    topic: str,
    values: Mapping[int, Sequence[bytes | None]],
    *,
    transaction: bool | None = None,
) -> None:
    """Write values to partitions; `transaction` True commits them as one, False aborts them."""
    properties: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5}
    if transaction is not None:
        properties["transactional.id"] = f"{topic}-producer"
    producer = Producer(properties)
    if transaction is not None:
        producer.init_transactions(ANSWERS_WITHIN_S)
        producer.begin_transaction()
    for partition, some in sorted(values.items()):
        for number, value in enumerate(some):
            send = partial(
                producer.produce,
                topic,
                value,
                key=f"{partition}-{number}".encode(),
                partition=partition,
                headers=[("trace", b"abc")],
            )
            while True:
                try:
                    send()
                except BufferError:  # the broker is slower than we are
                    producer.poll(0.1)
                else:
                    break
            producer.poll(0)
    if transaction is None:
        assert producer.flush(ANSWERS_WITHIN_S) == 0
    elif transaction:
        producer.commit_transaction(ANSWERS_WITHIN_S)
    else:
        producer.flush(ANSWERS_WITHIN_S)
        producer.abort_transaction(ANSWERS_WITHIN_S)


@dataclass
class Carrier:
    """One consumer's worth of pipeline: plans from the ledger and carries."""

    settings: Settings
    session: Any
    writer: Writer = field(default_factory=lambda: Writer(1, 1))
    points: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kafka = Administration(self.settings.kafka)
        self.pipeline = Pipeline(self.settings, self.session, at_point=self.points.append)

    def topic_id(self, topic: str) -> str:
        return self.kafka.topics([topic])[topic].topic_id

    def plan(
        self, topic: str, *, at_most: int | None = None, partitions: Sequence[int] | None = None
    ) -> list[PlannedRange]:
        """From the ledger's offset up to the end of what is committed."""
        view = self.kafka.topics([topic])[topic]
        places = [
            TopicPartition(topic, number)
            for number in (range(view.partitions) if partitions is None else partitions)
        ]
        ledger = self.pipeline.next_offsets(dict.fromkeys(places, view.topic_id))
        starts, ends = self.kafka.start_offsets(places), self.kafka.stable_offsets(places)
        planned = []
        for place in places:
            known = ledger[place]
            start = starts[place] if known is None else known
            end = ends[place] if at_most is None else min(ends[place], start + at_most)
            if end > start or known is None:
                planned.append(PlannedRange(OffsetRange(place, start, end), view.topic_id, known))
        return planned

    def carry(self, planned: Sequence[PlannedRange]) -> BatchResult:
        return self.pipeline.carry(planned, writer=self.writer)

    def carry_all(self, topic: str) -> BatchResult:
        return self.carry(self.plan(topic))

    def verify(self, *topics: str) -> VerificationResult:
        return verify(self.settings, topics)
