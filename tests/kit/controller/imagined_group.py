"""A group without Kafka or Spark: the real machine and packer lead consumers that are only numbers.

Each consumer carries a given number of bytes a second, and all of them share a limit, like
processes on one machine. Time passes in steps of half a second. Commands are obeyed at once, so
that a test sees what is decided, not how it is carried out.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.decisions import told_since
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.messages import (
    ConsumerPhase,
    ConsumerReport,
    CycleMeasurement,
    ReportedPartition,
    StartConsumingCommand,
    StartConsumingEvent,
    StartedPartition,
    StopConsumingCommand,
    StopConsumingEvent,
    StoppedPartition,
    StopReason,
)
from penstock.model import ConsumerId, TopicPartition
from penstock.packing import algorithm_named
from penstock.settings import Settings, changed_settings

STEP_MS = 500
REPORT_MS = 2_000
RECORD_BYTES = 1_000
MB = 1e6
# When a consumer comes up for which no node has room.
NEVER_MS = 10**12


@dataclasses.dataclass(slots=True)
class Log:
    """What is written to a partition, by the time in seconds."""

    bytes_per_s: Callable[[float], float]
    written_bytes: float = 0.0
    carried_bytes: float = 0.0

    @property
    def behind_bytes(self) -> float:
        return self.written_bytes - self.carried_bytes


@dataclasses.dataclass(slots=True)
class Worker:
    """A consumer: what it owns, and what it carried since its last report."""

    incarnation: int
    up_at_ms: int
    owned: dict[TopicPartition, str] = dataclasses.field(default_factory=dict)
    sequence: int = 0
    carried_bytes: float = 0.0
    # Only while it was behind does what it carried show its capacity.
    capacity_bytes_per_s: float | None = None


class ImaginedGroup:
    def __init__(
        self,
        logs: dict[str, Callable[[float], float]],
        *,
        carries_bytes_per_s: float = 2 * MB,
        shared_bytes_per_s: float = math.inf,
        start_ms: int = 5_000,
        waiting_bytes: float = 0.0,
        calibrated: dict[str, float] | None = None,
        **options: Any,
    ) -> None:
        chosen = {name.replace("__", "."): value for name, value in options.items()}
        self.settings = changed_settings(
            Settings(), {"controller.consumers_max": 100, "packing.capacity": "2MB/s", **chosen}
        )
        self.logs = {TopicPartition.parse(name): Log(speed) for name, speed in logs.items()}
        for log in self.logs.values():
            log.written_bytes = waiting_bytes / len(self.logs)
        self.carries_bytes_per_s = carries_bytes_per_s
        self.shared_bytes_per_s = shared_bytes_per_s
        self.start_ms = start_ms
        self.now_ms = 0
        self.workers: dict[ConsumerId, Worker] = {}
        self.counts: Counter[str] = Counter()
        self.most_deployed = 0
        self.decisions: list[tuple[float, str, str]] = []
        self.cannot_start: set[ConsumerId] = set()
        # New consumers find no node: the deployment says that they still start.
        self.is_cluster_full = False
        # What some consumers carry by themselves, where it is not what all do.
        self.own_bytes_per_s: dict[ConsumerId, float] = {}
        # None: all of them.
        self.can_carry: set[ConsumerId] | None = None
        self.measured: Callable[[dict[TopicPartition, float]], Any] = dict
        self._incarnations = 0
        # What the controller does not read while it stands still; None: it does not.
        self._held_back: list[inputs.Input] | None = None
        self._waiting: list[inputs.Input] = []
        self._machine = Machine()
        self.state: State
        self.state, effects = self._machine.begin(
            controller_epoch=1, settings=self.settings, now_ms=0, calibrated=calibrated
        )
        self._run(effects)
        self._settle()

    # What a test looks at

    @property
    def second(self) -> float:
        return self.now_ms / 1_000

    @property
    def working(self) -> int:
        """How many consumers have partitions."""
        return sum(1 for worker in self.workers.values() if worker.owned)

    @property
    def deployed(self) -> int:
        return len(self.workers)

    @property
    def behind_bytes(self) -> float:
        return sum(log.behind_bytes for log in self.logs.values())

    def loads(self) -> dict[ConsumerId, float]:
        """What is written to the partitions of each working consumer."""
        return {
            consumer: sum(self.logs[p].bytes_per_s(self.second) for p in worker.owned)
            for consumer, worker in self.workers.items()
            if worker.owned
        }

    def said(self, code: str) -> list[str]:
        return [explanation for _, one, explanation in self.decisions if one == code]

    def run(self, seconds: float) -> "ImaginedGroup":
        for _ in range(round(seconds * 1_000 / STEP_MS)):
            self.now_ms += STEP_MS
            self._write_and_carry()
            if self.now_ms % 1_000 == 0:
                speeds = {p: log.bytes_per_s(self.second) for p, log in self.logs.items()}
                found = self.measured(speeds)
                if found is not None:
                    self.give(inputs.SpeedsMeasured(self.now_ms, found))
            for consumer in sorted(self.workers):
                self._report_if_due(consumer)
            self.give(inputs.Tick(self.now_ms, unix_ms=self.now_ms))
        return self

    # What can happen to the group

    def kill(self, victim: ConsumerId, back_after_ms: int = 4_000) -> None:
        """Its process is gone, which the deployment confirms, and it is started again."""
        worker = self.workers[victim]
        worker.owned.clear()
        worker.incarnation += 1_000
        worker.sequence, worker.carried_bytes = 0, 0.0
        worker.up_at_ms = self.now_ms + back_after_ms
        self.give(inputs.ConsumerIncident(self.now_ms, victim, "it ended", has_ended=True))

    def stand_still(self, seconds: float) -> None:
        """The controller is paused; then it looks at the time first, and reads all that waits.

        What it asks for then, like its own heartbeat, is behind that in the log.
        """
        self._held_back = []
        self.run(seconds)
        waiting, self._held_back = self._held_back, None
        self._take(inputs.Tick(self.now_ms, unix_ms=self.now_ms))
        asked, self._waiting = self._waiting, []
        for given in waiting:
            if not isinstance(given, inputs.Tick):
                self.give(dataclasses.replace(given, now_ms=self.now_ms))
        self._waiting += asked
        self._settle()

    # The consumers

    def _write_and_carry(self) -> None:
        seconds = STEP_MS / 1_000
        for log in self.logs.values():
            log.written_bytes += log.bytes_per_s(self.second) * seconds
        at_work = {
            consumer: worker
            for consumer, worker in self.workers.items()
            if self._behind(worker)
            and self._is_up(worker)
            and (self.can_carry is None or consumer in self.can_carry)
        }
        share = self.shared_bytes_per_s / max(1, len(at_work))
        for consumer, worker in at_work.items():
            own = self.own_bytes_per_s.get(consumer, self.carries_bytes_per_s)
            can_carry = min(own, share) * seconds
            behind = self._behind(worker)
            carried = min(can_carry, behind)
            for partition in worker.owned:
                log = self.logs[partition]
                log.carried_bytes += log.behind_bytes / behind * carried
            worker.carried_bytes += carried
            if behind > 2 * can_carry:
                worker.capacity_bytes_per_s = can_carry / seconds

    def _behind(self, worker: Worker) -> float:
        return sum(self.logs[partition].behind_bytes for partition in worker.owned)

    def _is_up(self, worker: Worker) -> bool:
        return self.now_ms >= worker.up_at_ms

    def _head(self, consumer: ConsumerId) -> dict[str, Any]:
        worker = self.workers[consumer]
        worker.sequence += 1
        return {
            "consumer_id": int(consumer),
            "incarnation": worker.incarnation,
            "sequence": worker.sequence,
            "controller_epoch": 1,
            "plan_number": self.state.plan_number,
        }

    def _report_if_due(self, consumer: ConsumerId) -> None:
        worker = self.workers[consumer]
        is_due = (self.now_ms - worker.up_at_ms) % REPORT_MS == 0
        if not self._is_up(worker) or not is_due or consumer in self.cannot_start:
            return
        rows = tuple(self._row(p, epoch) for p, epoch in sorted(worker.owned.items()))
        behind_bytes = sum((row.end_offset or 0) - (row.next_offset or 0) for row in rows)
        work = CycleMeasurement(
            batches=1,
            records=0,
            decoded_bytes=0,
            log_bytes=round(worker.carried_bytes),
            read_ms=0,
            transform_ms=0,
            write_ms=0,
            commit_ms=0,
        )
        worker.carried_bytes = 0.0
        report = ConsumerReport(
            **self._head(consumer),
            report_number=worker.sequence,
            phase=ConsumerPhase.RUNNING,
            capacity_log_bytes_per_s=worker.capacity_bytes_per_s,
            behind_records=behind_bytes,
            behind_log_bytes=behind_bytes * RECORD_BYTES,
            cycle=work,
            owned=rows,
        )
        self.give(inputs.ConsumerMessageRead(self.now_ms, report))

    def _row(self, partition: TopicPartition, epoch: str) -> ReportedPartition:
        log = self.logs[partition]
        return ReportedPartition(
            topic=partition.topic,
            partition=partition.partition,
            epoch=epoch,
            next_offset=int(log.carried_bytes / RECORD_BYTES),
            end_offset=int(log.written_bytes / RECORD_BYTES),
        )

    # The machine

    def give(self, given: inputs.Input) -> None:
        if self._held_back is not None:
            self._held_back.append(given)
            return
        self._take(given)
        self._settle()

    def _take(self, given: inputs.Input) -> None:
        before = self.state
        self.state, effects = self._machine.step(before, given)
        check_whole(self.state)
        for decision in told_since(before.history, self.state.history):
            self.counts[decision.code.value] += 1
            self.counts["moves"] += decision.moves
            self.decisions.append((self.second, decision.code.value, decision.explanation))
        self._run(effects)

    def _settle(self) -> None:
        while self._waiting:
            self._take(self._waiting.pop(0))

    def _run(self, effects: tuple[act.Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, act.ListDeployments):
                listed = {
                    consumer: inputs.Deployed(is_starting=worker.up_at_ms == NEVER_MS)
                    for consumer, worker in self.workers.items()
                }
                self._waiting.append(inputs.DeploymentsListed(self.now_ms, listed))
            elif isinstance(effect, act.SendHeartbeat):
                epoch, number = effect.message.controller_epoch, effect.message.heartbeat_number
                self._waiting.append(inputs.HeartbeatReturned(self.now_ms, epoch, number))
            elif isinstance(effect, act.CreateConsumer):
                self._incarnations += 1
                up_at_ms = NEVER_MS if self.is_cluster_full else self.now_ms + self.start_ms
                worker = Worker(self._incarnations, up_at_ms)
                self.workers[effect.consumer] = worker
                self.counts["created"] += 1
                self.most_deployed = max(self.most_deployed, len(self.workers))
            elif isinstance(effect, act.DeleteConsumer):
                if self.workers.pop(effect.consumer, None) is not None:
                    self.counts["deleted"] += 1
                self._waiting.append(inputs.ConsumerDeleted(self.now_ms, effect.consumer))
            elif isinstance(effect, act.Pack):
                packing = algorithm_named(effect.algorithm).pack(effect.problem)
                self._waiting.append(inputs.Packed(self.now_ms, effect.number, packing))
            elif isinstance(effect, act.Send):
                self._obey(effect.message)

    def _obey(self, message: Any) -> None:
        worker = self.workers.get(ConsumerId(getattr(message, "consumer_id", 0) or 1))
        if worker is None:
            return
        if isinstance(message, StartConsumingCommand):
            consumer = ConsumerId(message.consumer_id)
            for row in message.partitions:
                worker.owned[row.topic_partition] = row.epoch
            started = tuple(
                StartedPartition(topic=r.topic, partition=r.partition, epoch=r.epoch)
                for r in message.partitions
            )
            event = StartConsumingEvent(**self._head(consumer), partitions=started)
            self._waiting.append(inputs.ConsumerMessageRead(self.now_ms, event))
        elif isinstance(message, StopConsumingCommand):
            consumer = ConsumerId(message.consumer_id)
            self.counts["stops"] += len(message.partitions)
            for stop in message.partitions:
                worker.owned.pop(stop.topic_partition, None)
            stopped = tuple(
                StoppedPartition(
                    topic=r.topic, partition=r.partition, epoch=r.epoch, reason=StopReason.COMMANDED
                )
                for r in message.partitions
            )
            gone = StopConsumingEvent(**self._head(consumer), partitions=stopped)
            self._waiting.append(inputs.ConsumerMessageRead(self.now_ms, gone))


def constant(bytes_per_s: float) -> Callable[[float], float]:
    return lambda _: bytes_per_s


def partitions(number: int, bytes_per_s: float, topic: str = "t") -> dict[str, Any]:
    """Partitions that are all written at the same constant speed."""
    return {f"{topic}-{n}": constant(bytes_per_s) for n in range(number)}
