"""Produces the load: every few milliseconds each partition gets the records that are due.

The bytes due are the shape's speed times the time passed. If the broker cannot keep up, at most one
second of load is made up for; the rest is skipped and reported, so that no flood follows a pause.
The reported speed counts records that the broker has acknowledged.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import TypeAlias

from penstock.kafka_io.producer import Delivered, RecordProducer
from penstock.laboratory.load.records import RecordForm, RecordMaker
from penstock.laboratory.load.targets import Target
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

TICK_S = 0.01
DEBT_MAX_S = 1.0
SAMPLE_EVERY_S = 1.0
FLUSH_TIMEOUT_S = 30.0
# (partition, number of the record in its partition, error or None)
RecordOutcome: TypeAlias = Callable[[TopicPartition, int, Exception | None], None]


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What the broker acknowledged for one partition during one period."""

    elapsed_s: float
    topic: str
    partition: int
    target_bytes_per_s: float
    reached_bytes_per_s: float
    reached_records_per_s: float
    records_total: int


@dataclass(frozen=True, slots=True)
class LoadResult:
    seconds: float
    records_sent: int
    records_acknowledged: int
    bytes_acknowledged: int
    records_failed: int
    bytes_skipped: int
    first_failure: str | None
    records_by_partition: dict[str, int]

    @property
    def bytes_per_s(self) -> float:
        return self.bytes_acknowledged / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class _Lane:
    """The counters of one partition."""

    target: Target
    owed_bytes: float = 0.0
    target_bytes: float = 0.0
    sent: int = 0
    acknowledged: int = 0
    acknowledged_bytes: int = 0
    failed: int = 0
    first_failure: str | None = None
    sampled: tuple[float, int, int] = field(default=(0.0, 0, 0))

    def delivered(self, error: Exception | None, size_bytes: int) -> None:
        if error is None:
            self.acknowledged += 1
            self.acknowledged_bytes += size_bytes
        else:
            self.failed += 1
            self.first_failure = self.first_failure or str(error)


class LoadGenerator:
    def __init__(
        self,
        kafka: KafkaSettings,
        targets: list[Target],
        *,
        run_id: str,
        form: RecordForm | None = None,
        seed: int = 0,
        compression: str = "none",
        on_samples: Callable[[list[LoadSample]], None] = lambda _: None,
        on_outcome: RecordOutcome | None = None,
    ) -> None:
        """`on_outcome` is told of every record whether it was delivered."""
        self._form = form or RecordForm()
        self._maker = RecordMaker(self._form, run_id, seed=seed)
        self._lanes = [_Lane(target) for target in targets]
        self._on_samples = on_samples
        self._on_outcome = on_outcome
        self._bytes_skipped = 0.0
        self._producer = RecordProducer(
            kafka,
            **{
                "compression.type": compression,
                "queue.buffering.max.messages": 200_000,
                "batch.size": 256 * 1024,
            },
        )

    def run(self, duration_s: float, stop: Event | None = None) -> LoadResult:
        """Produce for `duration_s` or until `stop` is set, then wait for acknowledgements."""
        stop = stop or Event()
        reports: list[Delivered] = [lane.delivered for lane in self._lanes]
        # On a busy machine the broker may not know a new topic yet.
        self._producer.wait_until_known(lane.target.partition for lane in self._lanes)
        begun = time.monotonic()
        last, next_sample = 0.0, SAMPLE_EVERY_S
        while not stop.is_set() and last < duration_s:
            elapsed = min(time.monotonic() - begun, duration_s)
            at_ms = time.time_ns() // 1_000_000
            for lane, report in zip(self._lanes, reports, strict=True):
                self._send_due(lane, report, last, elapsed, at_ms)
            last = elapsed
            if elapsed >= next_sample:
                self._sample(elapsed)
                next_sample = elapsed - elapsed % SAMPLE_EVERY_S + SAMPLE_EVERY_S
            # Waiting for delivery reports is also the pause between ticks.
            self._producer.poll(max(0.0, TICK_S - (time.monotonic() - begun - elapsed)))
        self._producer.flush(FLUSH_TIMEOUT_S)
        seconds = time.monotonic() - begun
        self._sample(seconds)
        return self._result(seconds)

    def _send_due(
        self, lane: _Lane, report: Delivered, since_s: float, until_s: float, at_ms: int
    ) -> None:
        """Send what became due between `since_s` and `until_s`."""
        speed = lane.target.shape.speed_bytes_per_s((since_s + until_s) / 2)
        due = speed * (until_s - since_s)
        lane.target_bytes += due
        lane.owed_bytes += due
        too_much = lane.owed_bytes - max(speed * DEBT_MAX_S, self._form.record_bytes)
        if too_much > 0:
            lane.owed_bytes -= too_much
            self._bytes_skipped += too_much
        partition = lane.target.partition
        while lane.owed_bytes >= self._form.record_bytes:
            key, value = self._maker.record(partition, lane.sent, at_ms)
            self._producer.send(
                partition.topic,
                partition.partition,
                value,
                key=key,
                on_delivery=report if self._on_outcome is None else self._told(lane, report),
            )
            lane.owed_bytes -= self._form.record_bytes
            lane.sent += 1
            if lane.sent % 256 == 0:
                self._producer.poll()

    def _told(self, lane: _Lane, report: Delivered) -> Delivered:
        """Reports the next record of the lane to `on_outcome` as well."""
        number, partition, tell = lane.sent, lane.target.partition, self._on_outcome

        def delivered(error: Exception | None, size_bytes: int) -> None:
            report(error, size_bytes)
            if tell is not None:
                tell(partition, number, error)

        return delivered

    def _sample(self, elapsed_s: float) -> None:
        samples = []
        for lane in self._lanes:
            since_s, bytes_before, records_before = lane.sampled
            seconds = elapsed_s - since_s
            if seconds <= 0:
                continue
            partition = lane.target.partition
            samples.append(
                LoadSample(
                    elapsed_s=round(elapsed_s, 3),
                    topic=partition.topic,
                    partition=partition.partition,
                    target_bytes_per_s=lane.target_bytes / seconds,
                    reached_bytes_per_s=(lane.acknowledged_bytes - bytes_before) / seconds,
                    reached_records_per_s=(lane.acknowledged - records_before) / seconds,
                    records_total=lane.acknowledged,
                )
            )
            lane.sampled = (elapsed_s, lane.acknowledged_bytes, lane.acknowledged)
            lane.target_bytes = 0.0
        self._on_samples(samples)

    def acknowledged(self) -> dict[TopicPartition, tuple[int, int]]:
        """Records and bytes so far, by partition; may be read from another thread."""
        return {
            lane.target.partition: (lane.acknowledged, lane.acknowledged_bytes)
            for lane in self._lanes
        }

    def _result(self, seconds: float) -> LoadResult:
        sent = sum(lane.sent for lane in self._lanes)
        acknowledged = sum(lane.acknowledged for lane in self._lanes)
        failures = [lane.first_failure for lane in self._lanes if lane.first_failure]
        return LoadResult(
            seconds=seconds,
            records_sent=sent,
            records_acknowledged=acknowledged,
            bytes_acknowledged=sum(lane.acknowledged_bytes for lane in self._lanes),
            # A record without an acknowledgement by now counts as failed.
            records_failed=sent - acknowledged,
            bytes_skipped=round(self._bytes_skipped),
            first_failure=failures[0] if failures else None,
            records_by_partition={
                str(lane.target.partition): lane.acknowledged for lane in self._lanes
            },
        )
