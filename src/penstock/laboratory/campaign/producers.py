"""The producers of a campaign: keyed, compressed and transactional, each on a thread of its own.

What they are told about each record goes to a DeliveryLog. They go on through any outage of the
broker.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.errors import PenstockError
from penstock.kafka_io.producer import RecordProducer
from penstock.kafka_io.transactional_producer import (
    KeyedRecord,
    TransactionalProducer,
    TransactionOutcome,
)
from penstock.laboratory.campaign.deliveries import DeliveryLog, Outcome
from penstock.laboratory.load import LoadGenerator, RecordForm, RecordMaker, Target, lane_of
from penstock.laboratory.load.shapes import Constant
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

TRANSACTION_EVERY_S = 0.5
ABORTED_SHARE = 0.2
# Longer than any outage: a producer waits for its broker.
PATIENCE_S = 180.0
_FOR_EVER_S = 1e9
_TRY_AGAIN_S = 1.0
_OUTCOMES = {
    TransactionOutcome.COMMITTED: Outcome.COMMITTED,
    TransactionOutcome.ABORTED: Outcome.ABORTED,
    TransactionOutcome.UNKNOWN: Outcome.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Style:
    """How a topic is written, and how fast each of its partitions."""

    bytes_per_s: float
    form: RecordForm
    compression: str = "none"
    is_transactional: bool = False


@dataclass(frozen=True, slots=True)
class _Running:
    topic: str
    thread: threading.Thread
    stop: threading.Event


class Producers:
    def __init__(self, kafka: KafkaSettings, seed: int) -> None:
        self.log = DeliveryLog()
        self.deleted_lanes: set[str] = set()
        self._kafka = kafka
        self._seed = seed
        self._running: list[_Running] = []
        self._started = 0
        self._lock = threading.Lock()

    def start(self, topic: str, partitions: Sequence[int], style: Style) -> None:
        """Write to these partitions until the topic or all is stopped."""
        stop = threading.Event()
        places = [TopicPartition(topic, number) for number in partitions]
        with self._lock:
            self._started += 1
            run_id = f"p{self._started}"
            produce = self._transact if style.is_transactional else self._load
            thread = threading.Thread(
                target=produce, args=(places, style, run_id, stop), name=f"producer-{run_id}"
            )
            self._running.append(_Running(topic, thread, stop))
        thread.start()

    def stop_topic(self, topic: str) -> None:
        """Stop writing to a topic that will be deleted; its records need not reach the lake."""
        for one in self._stopping(topic):
            one.thread.join()
        self.deleted_lanes |= {lane for lane in list(self.log.lanes) if _topic_of(lane) == topic}

    def stop(self, meanwhile: Callable[[], None]) -> None:
        """Stop all and wait; `meanwhile` is called again and again."""
        waiting = self._stopping(None)
        while any(one.thread.is_alive() for one in waiting):
            meanwhile()

    def _stopping(self, topic: str | None) -> list[_Running]:
        with self._lock:
            chosen = [one for one in self._running if topic in {None, one.topic}]
        for one in chosen:
            one.stop.set()
        return chosen

    def _load(
        self, places: list[TopicPartition], style: Style, run_id: str, stop: threading.Event
    ) -> None:
        targets = [Target(place, Constant(style.bytes_per_s)) for place in places]
        attempt = 0
        while not stop.is_set():
            attempt += 1
            try:
                LoadGenerator(
                    self._kafka,
                    targets,
                    run_id=f"{run_id}x{attempt}",
                    form=style.form,
                    seed=self._seed,
                    compression=style.compression,
                    on_outcome=partial(self._told, f"{run_id}x{attempt}"),
                ).run(_FOR_EVER_S, stop)
            except PenstockError:
                # The broker was away when it looked for the topic. New ids: the former producer
                # may still deliver what it has.
                stop.wait(_TRY_AGAIN_S)

    def _wait_until_known(self, places: list[TopicPartition], stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                RecordProducer(self._kafka).wait_until_known(places)
            except PenstockError:  # the broker is away
                stop.wait(_TRY_AGAIN_S)
            else:
                return

    def _told(
        self, run_id: str, partition: TopicPartition, number: int, error: Exception | None
    ) -> None:
        outcome = Outcome.COMMITTED if error is None else Outcome.UNKNOWN
        self.log.note(lane_of(run_id, partition), number, outcome)

    def _transact(
        self, places: list[TopicPartition], style: Style, run_id: str, stop: threading.Event
    ) -> None:
        self._wait_until_known(places, stop)
        chance = random.Random(f"{self._seed}/{run_id}")
        maker = RecordMaker(style.form, run_id, seed=self._seed)
        producer = TransactionalProducer(
            self._kafka,
            f"campaign-{run_id}",
            patience_s=PATIENCE_S,
            **{"compression.type": style.compression},
        )
        each = round(style.bytes_per_s * TRANSACTION_EVERY_S / style.form.record_bytes)
        written = 0
        while not stop.is_set():
            begun_s, at_ms = time.monotonic(), time.time_ns() // 1_000_000
            records = [
                KeyedRecord(
                    place.topic, place.partition, *maker.record(place, written + index, at_ms)
                )
                for place in places
                for index in range(each)
            ]
            is_committed = chance.random() >= ABORTED_SHARE
            outcome = _OUTCOMES[producer.transact(records, is_committed=is_committed)]
            for place in places:
                lane = lane_of(run_id, place)
                self.log.note_range(lane, written, written + each, outcome)
            written += each
            stop.wait(max(0.0, TRANSACTION_EVERY_S - (time.monotonic() - begun_s)))


def _topic_of(lane: str) -> str:
    return lane.split("-", 1)[1].rpartition("-")[0]
