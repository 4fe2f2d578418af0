"""A simulated consumer process: the real core, answered on the virtual clock.

Reads of the ledger and of the logs take time and can fail; batches run against the simulated
ledger, and can hang, fail, or end without a known outcome. The process can crash (and lose
everything), pause in the middle of anything (a zombie), and go on running when its deployment is
deleted.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.consumer.core import effects as act
from penstock.consumer.core import inputs
from penstock.consumer.core.inputs import LedgerEntry, PartitionFailure
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.settings import CoreSettings, core_settings
from penstock.consumer.core.state_machine import begin, step
from penstock.errors import PenstockError, UnreachableError
from penstock.laboratory.protocol_simulation.simulated_process import (
    FOR_EVER_MS,
    RECOVERS_MS,
    SimulatedProcess,
)
from penstock.messages import (
    Message,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
    StopReason,
    WaitsFor,
)
from penstock.model import ConsumerId, TopicPartition
from penstock.settings import Settings, changed_settings

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup

HANG_MS = 30_000
READ_MS = (2, 30)
BATCH_MS = (60, 700)
# Of the capacity: what a consumer that is limited in what it reads may read.
READ_LIMIT = 4
# A lake that is away is asked for this long, as by a client that tries again.
LAKE_TIMEOUT_MS = (200, 8_000)
SPARK_START_MS = (20, 400)
# Of the batches that fail in a way that passes: those that lose Spark.
SPARK_LOST_SHARE = 0.3
# Of the batches with an unknown outcome: those that were committed.
COMMITTED_SHARE = 0.7


# The times of production, shortened.
SETTINGS = changed_settings(
    Settings(),
    {
        "consumer.batch_time": "400ms",
        "consumer.backlog_batch_time": "800ms",
        "consumer.batch_period": "600ms",
        "consumer.idle_wait": "600ms",
        "consumer.report_period": "1s",
        "consumer.grace": "5s",
        "lake.compact_period": "0s",
        "spark.master": "sc://simulated:15002",
    },
)


def settings_of(
    consumer: ConsumerId,
    version: int,
    capacity_bytes_per_s: float,
    batch_s: float,
    *,
    measures_topics: bool,
) -> CoreSettings:
    """Every other consumer is limited in what it reads. Batches are smaller than users may ask."""
    return replace(
        core_settings(SETTINGS, version),
        batch_bytes=int(batch_s * capacity_bytes_per_s),
        capacity_bytes_per_s=READ_LIMIT * capacity_bytes_per_s if consumer % 2 else 0.0,
        measures_topics=measures_topics,
    )


class SimulatedConsumer(SimulatedProcess):
    def __init__(
        self, group: "SimulatedGroup", consumer: ConsumerId, incarnation: int, version: int
    ) -> None:
        super().__init__(group.clock)
        self.group = group
        self.consumer = consumer
        self.version = version
        self.hangs_next = False
        self.outcome_unknown_next = False
        self.fails_next = False
        # What is true outside the core; the checker compares it with what the core begins.
        self.has_spark = False
        self.is_carrying = False
        self.outcome_unknown: frozenset[TopicPartition] = frozenset()
        # An interrupted batch finds another number than its own, and does nothing.
        self._batch_number = 0
        self._ranges: tuple[act.RangeToCarry, ...] = ()
        # Effects without an entry concern what is not simulated: logs, health, offsets, tables.
        self._runs: Mapping[type[act.Effect], Callable[[Any], None]] = {
            act.WaitUntil: self._wait_until,
            act.SendToController: self._send,
            act.ReadLedger: self._read_ledger,
            act.ReadEnds: self._read_ends,
            act.ReadLogSizes: self._read_log_sizes,
            act.StartSpark: self._start_spark,
            act.CarryBatch: self._carry,
            act.InterruptBatch: self._interrupt,
            act.EndControlled: self._end,
            act.Fail: self._fail,
        }
        self.state, effects = begin(
            settings_of(
                consumer,
                version,
                group.capacity_bytes_per_s,
                group.batch_s,
                measures_topics=group.scenario.capacity_is_measured,
            ),
            Ownership(consumer, incarnation),
            now_ms=group.clock.now_ms,
        )
        self._run(effects)

    @property
    def ownership(self) -> Ownership:
        return self.state.ownership

    # The process

    def crash(self) -> None:
        self.is_alive = False

    def shut_down(self) -> None:
        self.harm(FOR_EVER_MS)
        self.later(0, lambda: self._take(inputs.ShutdownAsked(self._now_ms)))

    def deliver(self, message: Message) -> None:
        if isinstance(message, (StartConsumingCommand, StopConsumingCommand, StateQuery)):
            read = (message,)
            self.later(0, lambda: self._take(inputs.MessagesRead(self._now_ms, read)))

    def deliver_forged(self, message: inputs.Command | StateQuery) -> None:
        """The mailbox knows that the leader did not write it."""
        self.later(
            0,
            lambda: self._take(inputs.MessagesRead(self._now_ms, (), not_from_leader=(message,))),
        )

    @property
    def _now_ms(self) -> int:
        return self.clock.now_ms

    # The core

    def _take(self, given: inputs.Input) -> None:
        before = self.state
        self.state, effects = step(before, given)
        self.group.checker.consumer_stepped(before.ownership, self.state.ownership)
        self._run(effects)

    def _run(self, effects: tuple[act.Effect, ...]) -> None:
        for effect in effects:
            run = self._runs.get(type(effect))
            if run is not None:
                run(effect)

    def _wait_until(self, effect: act.WaitUntil) -> None:
        self.wake_at(effect.at_ms, lambda: self._take(inputs.Tick(self._now_ms)))

    def _send(self, effect: act.SendToController) -> None:
        self.group.to_controller(self, effect.message)

    def _end(self, _: act.EndControlled) -> None:
        self.group.checker.consumer_ends(self)
        self.is_alive = False
        self.group.consumer_ended(self)

    def _fail(self, effect: act.Fail) -> None:
        self.group.count_event(f"consumer failed: {type(effect.error).__name__}")
        self.group.deployment.crashed(self)

    # Reads

    def _answer(
        self,
        make: Callable[[], inputs.Input],
        failed: Callable[[], inputs.Input],
        *,
        away_until_ms: int,
    ) -> None:
        """Some time later; as often as messages get lost, or while it is away, it fails instead."""
        is_lost = self.group.is_answer_lost()
        is_away = self._now_ms < away_until_ms

        def answer() -> None:
            self._take(failed() if is_lost or is_away else make())

        delay = READ_MS if not is_away else LAKE_TIMEOUT_MS
        self.later(self.group.chance.randint(*delay), answer)

    def _read_ledger(self, effect: act.ReadLedger) -> None:
        """The ledger is read at once and answered later: meanwhile it can change."""
        asked = effect.partitions
        entries = {p: entry for p in asked if (entry := self._entry(p)) is not None}
        settled = self.outcome_unknown & asked.keys()

        def answer() -> inputs.Input:
            bad = {p for p in asked if p.topic in self.group.unreadable_tables}
            self.outcome_unknown -= settled - bad
            good = {p: entry for p, entry in entries.items() if p not in bad}
            failures = {p: _away("the table") for p in sorted(bad)}
            return inputs.LedgerRead(self._now_ms, asked, good, failures, WaitsFor.LAKE)

        self._answer(
            answer,
            lambda: inputs.LedgerNotRead(self._now_ms, _away("the lake"), asked),
            away_until_ms=self.group.lake_away_until_ms,
        )

    def _entry(self, partition: TopicPartition) -> LedgerEntry | None:
        key = self.group.ledger_key(partition)
        if key is None:
            return None
        ledger = self.group.ledger
        return LedgerEntry(
            key[0],
            ledger.next_offset.get(key),
            ledger.read(key),
            ledger.last_epoch.get(key),
        )

    def _read_ends(self, effect: act.ReadEnds) -> None:
        def ends() -> Mapping[TopicPartition, int]:
            logs = self.group.logs
            return {p: self.group.end_offset(p) for p in effect.partitions if p in logs}

        self._answer(
            lambda: inputs.EndsRead(self._now_ms, ends()),
            lambda: inputs.EndsNotRead(self._now_ms, _away("Kafka")),
            away_until_ms=self.group.topic.away_until_ms,
        )

    def _read_log_sizes(self, effect: act.ReadLogSizes) -> None:
        """A record is one byte, so that bytes and offsets are the same."""

        def sizes() -> Mapping[TopicPartition, float]:
            return {p: 1.0 for p in effect.partitions if self.group.end_offset(p)}

        self._answer(
            lambda: inputs.LogSizesRead(self._now_ms, sizes()),
            lambda: inputs.LogSizesNotRead(self._now_ms, _away("Kafka")),
            away_until_ms=self.group.topic.away_until_ms,
        )

    # Spark and batches

    def _start_spark(self, effect: act.StartSpark) -> None:
        """The first start is only lost to an outage; a later one can fail, and is tried again."""
        is_first = self._batch_number == 0
        is_lost = not is_first and self.group.is_answer_lost()

        def answer() -> None:
            now = self._now_ms
            is_away = now < self.group.spark_away_until_ms
            failed = inputs.SparkNotStarted(now, _away("Spark"))
            self.has_spark = not (is_lost or is_away)
            self._take(inputs.SparkStarted(now) if self.has_spark else failed)

        self.later(effect.after_ms + self.group.chance.randint(*SPARK_START_MS), answer)

    def _carry(self, effect: act.CarryBatch) -> None:
        self.group.checker.batch_begins(self, effect.ranges)
        self.is_carrying = True
        self._batch_number += 1
        self._ranges = effect.ranges
        duration = self.group.batch_ms([one.range for one in effect.ranges])
        if self.hangs_next:
            self.hangs_next = False
            if self.group.has_faults:
                duration = HANG_MS
                self.harm(HANG_MS + RECOVERS_MS)  # unlike batches that take long for all
        elif self._now_ms < self.group.long_batches_until_ms:
            duration = self.group.chance.randint(5_000, self.group.long_batch_ms)
        self.later(duration, lambda number=self._batch_number: self._end_batch(number))  # type: ignore[misc]  # mypy cannot type a lambda's default

    def _interrupt(self, _: act.InterruptBatch) -> None:
        """The batch is dropped whole: nothing of it is committed."""
        self._batch_number += 1
        failure = PartitionFailure(UnreachableError("interrupted"))
        failures = {one.range.partition: failure for one in self._ranges}
        self.later(
            self.group.chance.randint(*READ_MS),
            lambda: self._batch_ended(inputs.BatchEnded(self._now_ms, failures=failures)),
        )

    def _end_batch(self, number: int) -> None:
        if number != self._batch_number:
            return
        failures = self._own_failures()
        good = [one for one in self._ranges if one.range.partition not in failures]
        committed: dict[TopicPartition, int] = {}
        is_spark_away = self._now_ms < self.group.spark_away_until_ms
        is_away = self._now_ms < max(self.group.lake_away_until_ms, self.group.topic.away_until_ms)
        if is_spark_away or is_away or self.group.is_answer_lost():
            self.group.count_event("batch failed")
            is_spark = is_spark_away or (
                not is_away and self.group.chance.random() < SPARK_LOST_SHARE
            )
            self.has_spark = not (is_spark and good)
            failure = PartitionFailure(_away("Kafka"), is_spark_lost=is_spark)
            failures |= {one.range.partition: failure for one in good}
        else:
            for topic in sorted({one.range.partition.topic for one in good}):
                mine = [one for one in good if one.range.partition.topic == topic]
                self._commit(mine, committed, failures)
        records = sum(len(one.range) for one in good if one.range.partition in committed)
        self._batch_ended(
            inputs.BatchEnded(
                self._now_ms, committed, failures, records=records, decoded_bytes=records
            )
        )

    def _batch_ended(self, given: inputs.BatchEnded) -> None:
        self.is_carrying = False
        self.outcome_unknown |= {p for p, one in given.failures.items() if one.reason is None}
        self._take(given)

    def _own_failures(self) -> dict[TopicPartition, PartitionFailure]:
        """Topics that are gone or were made again, and a transformation that raises."""
        failures = {}
        for one in self._ranges:
            key = self.group.ledger_key(one.range.partition)
            if key is None:
                failures[one.range.partition] = PartitionFailure(_away("the topic"))
            elif one.range.partition.topic in self.group.unreadable_tables:
                failures[one.range.partition] = PartitionFailure(_away("the table"))
            elif key[0] != one.topic_id:
                error = PenstockError("another topic id")
                failure = PartitionFailure(error, StopReason.TOPIC_MADE_AGAIN)
                failures[one.range.partition] = failure
        good = [one.range.partition for one in self._ranges if one.range.partition not in failures]
        if self.group.deployment.is_bad(self.version):
            error = PenstockError("a bad deployment")
            stopped = PartitionFailure(error, StopReason.TRANSFORMATION_FAILED)
            return failures | dict.fromkeys(good, stopped)
        if self.fails_next and good:
            self.fails_next = False
            error = PenstockError("poison")
            failures[min(good)] = PartitionFailure(error, StopReason.TRANSFORMATION_FAILED)
        return failures

    def _commit(
        self,
        ranges: list[act.RangeToCarry],
        committed: dict[TopicPartition, int],
        failures: dict[TopicPartition, PartitionFailure],
    ) -> None:
        """One commit per table. If it is late, late partitions are refused and others dropped."""
        places = {(one.topic_id, one.range.partition.partition): one for one in ranges}
        is_unknown, self.outcome_unknown_next = self.outcome_unknown_next, False
        unknown = PartitionFailure(UnreachableError("the outcome is unknown"))
        if is_unknown and self.group.chance.random() >= COMMITTED_SHARE:
            failures |= {one.range.partition: unknown for one in ranges}
            return
        late = self.group.ledger.commit(
            {key: one.range for key, one in places.items()},
            {one.range.partition: one.epoch for one in ranges},
            self.consumer,
            self.ownership.incarnation,
            {key: one.ledger_offset for key, one in places.items()},
        )
        self.group.checker.after_event()
        for key, one in places.items():
            partition = one.range.partition
            if is_unknown:
                failures[partition] = unknown
            elif not late:
                committed[partition] = one.range.end
            elif key in late:
                refused = PenstockError("another writer was first")
                failures[partition] = PartitionFailure(refused, StopReason.LEDGER_REFUSED)


def _away(what: str) -> UnreachableError:
    return UnreachableError(f"{what} is away")
