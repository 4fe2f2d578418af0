"""The working cycle: look how far the logs reach, plan ranges, carry them, take stock.

Runs in the loop's thread; what blocks is asked of the looking and the carrying thread. At most one
look and one batch are under way. What went wrong with one partition stays with that partition.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.consumer.core.inputs import BatchBegan, BatchEnded, Input
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.pace import (
    FIRST_BUDGET_BYTES,
    Allowance,
    CapacityEstimate,
    Pace,
    PaceLimits,
)
from penstock.consumer.core.partition_progress import PartitionProgress, ProgressTable, retry_wait_s
from penstock.consumer.core.ranges import RangePlan, plan_ranges
from penstock.consumer.process.external_systems import World
from penstock.consumer.process.ledger_lookup import LedgerLookup
from penstock.consumer.process.outcome import BatchOutcome, outcome_of
from penstock.consumer.process.threads import Worker, now_s
from penstock.errors import PenstockError
from penstock.kafka_io.offset_lookup import OffsetLookup
from penstock.messages import StopReason
from penstock.model import Epoch, OffsetRange, TopicPartition
from penstock.pipeline import BatchResult, PlannedRange
from penstock.settings import Settings

IDLE_WAIT_FIRST_S = 0.1
LOCAL_SPARK_FAILURES_MAX = 3


@dataclass(slots=True)
class _Batch:
    plan: RangePlan
    planned: list[PlannedRange]
    # Full because there was more than it could carry, not because its capacity is set lower.
    is_full: bool
    began_s: float
    # Since when the time counts: the end of the batch before, if this one followed at once.
    since_s: float


@dataclass(slots=True)
class _Diary:
    """When things are due, and what is under way."""

    next_look_s: float = 0.0
    idle_wait_s: float = IDLE_WAIT_FIRST_S
    is_looking: bool = False
    spark_is_ready: bool = False
    spark_failures: int = 0
    batch: _Batch | None = None
    batch_ended_s: float = -math.inf


class Cycle:
    def __init__(
        self,
        settings: Settings,
        world: World,
        looking: Worker,
        carrying: Worker,
        *,
        ownership: Callable[[], Ownership],
        feed: Callable[[Input], None],
        on_commit: Callable[[Mapping[TopicPartition, int]], None],
        log: Any,
    ) -> None:
        consumer = settings.consumer
        self.progress = ProgressTable()
        self.estimate = CapacityEstimate()
        self._settings = settings
        self._world = world
        self._looking = looking
        self._carrying = carrying
        self._ownership = ownership
        self._feed = feed
        self._on_commit = on_commit
        self._log = log
        self._pace = Pace(
            PaceLimits(consumer.batch_bytes, consumer.batch_time, consumer.backlog_batch_time),
            budget_bytes=min(FIRST_BUDGET_BYTES, consumer.batch_bytes),
        )
        self._allowance = Allowance(consumer.capacity, saved_s_max=consumer.backlog_batch_time)
        self._diary = _Diary()
        self.standings = LedgerLookup(
            self.progress,
            world,
            looking,
            ownership=ownership,
            feed=feed,
            on_news=self._look_soon,
            log=log,
        )

    @property
    def is_carrying(self) -> bool:
        return self._diary.batch is not None

    def start_spark(self) -> None:
        """The session comes up beside everything else; batches wait for it."""
        self._diary.spark_is_ready = False
        self._carrying.ask(self._world.start_spark, self._spark_started, self._spark_not_started)

    def _spark_started(self, _: None) -> None:
        self._diary.spark_is_ready = True
        self._log.info("spark_ready", master=self._settings.spark.master)

    def _spark_not_started(self, error: Exception) -> None:
        """At the start that is the end; later a server that went away may come back."""
        diary = self._diary
        diary.spark_failures += 1
        if diary.batch_ended_s == -math.inf or not isinstance(error, PenstockError):
            raise error
        self._log.warning("spark_away", error=str(error))
        wait_s = retry_wait_s(diary.spark_failures)
        self._carrying.ask(
            lambda: self._world.start_spark_after(wait_s),
            self._spark_started,
            self._spark_not_started,
        )

    def due_s(self) -> float:
        """When the next turn has something to do, if nothing arrives before."""
        look_s = self._diary.next_look_s if self._may_look() else math.inf
        return min(look_s, self.standings.due_s())

    def turn(self) -> None:
        """Ask for what is due."""
        self.standings.turn()
        if self._may_look() and now_s() >= self._diary.next_look_s:
            self._diary.is_looking = True
            asked = sorted(self._readable())
            self._looking.ask(lambda: self._world.look(asked), self._looked, self._not_looked)

    def _look_soon(self) -> None:
        """Something is new: no waiting."""
        self._diary.next_look_s = now_s()

    def _may_look(self) -> bool:
        diary = self._diary
        return (
            diary.spark_is_ready
            and diary.batch is None
            and not diary.is_looking
            and not self._ownership().is_shutting_down
            and bool(self._readable())
        )

    def _readable(self) -> dict[TopicPartition, int]:
        return {
            one: offset
            for one, offset in self._ownership().readable.items()
            if one in self.progress.rows
        }

    def _not_looked(self, error: Exception) -> None:
        if not isinstance(error, PenstockError):
            raise error
        self._diary.is_looking = False
        self._diary.next_look_s = now_s() + self._settings.consumer.idle_wait
        self._log.warning("ends_unknown", error=str(error))

    def _looked(self, found: OffsetLookup) -> None:
        diary, now = self._diary, now_s()
        diary.is_looking = False
        if found.failures:
            first = found.failures[min(found.failures)]
            self._log.warning("ends_unknown", partitions=len(found.failures), error=str(first))
        for partition, end in found.offsets.items():
            if partition in self.progress.rows:
                self.progress.rows[partition].end_offset = end
        if self._ownership().is_shutting_down:
            return
        waiting = self.progress.waiting(self._readable(), now)
        there_bytes = sum(one.size_bytes for one in waiting.values())
        if not there_bytes:
            diary.next_look_s = now + diary.idle_wait_s
            diary.idle_wait_s = min(2 * diary.idle_wait_s, self._settings.consumer.idle_wait)
            return
        diary.idle_wait_s = min(IDLE_WAIT_FIRST_S, self._settings.consumer.idle_wait)
        self._allowance = self._allowance.at(now)
        # With a capacity that is set, a batch waits until it is worth its cost.
        worth = min(there_bytes, self._allowance.capacity_bytes_per_s * self._period_s)
        if self._allowance.wait_s(worth) > 0:
            diary.next_look_s = now + self._allowance.wait_s(worth)
            return
        budget = self._allowance.limit(self._pace.budget_bytes)
        self._begin(plan_ranges(waiting, max(budget, 1.0)), now)

    @property
    def _period_s(self) -> float:
        return max(0.1, self._settings.consumer.batch_period)

    def _begin(self, plan: RangePlan, now: float) -> None:
        self.progress.batch_number += 1
        planned = []
        owned = self._ownership().owned
        for one in plan.ranges:
            row = self.progress.rows[one.partition]
            row.last_batch_number = self.progress.batch_number
            planned.append(self._planned(one, row, owned[one.partition].epoch))
        self._allowance = self._allowance.without(plan.size_bytes)
        is_full = plan.is_full and plan.size_bytes >= 0.5 * self._pace.budget_bytes
        follows = now - self._diary.batch_ended_s < 1.0 and self._pace.full_in_a_row > 0
        self._diary.batch = _Batch(
            plan, planned, is_full, now, self._diary.batch_ended_s if follows else now
        )
        self._log.debug("batch_begins", partitions=len(planned), log_bytes=round(plan.size_bytes))
        self._feed(BatchBegan(tuple(one.partition for one in plan.ranges)))
        self._carrying.ask(
            lambda: self._world.carry(planned), self._batch_done, self._batch_crashed
        )

    def _planned(self, one: OffsetRange, row: PartitionProgress, epoch: Epoch) -> PlannedRange:
        return PlannedRange(one, row.topic_id, row.ledger_offset, self._world.claim(epoch))

    def _batch_crashed(self, error: Exception) -> None:
        """Nobody expected this: end here, and let the next life read the ledger."""
        raise error

    def _batch_done(self, result: BatchResult) -> None:
        diary, now = self._diary, now_s()
        batch = diary.batch
        if batch is None:
            raise AssertionError("a batch ended that never began")
        diary.batch, diary.batch_ended_s = None, now
        outcome = outcome_of(
            result, skips_holes=self._settings.lake.on_offset_out_of_range == "skip-and-report"
        )
        self._take_stock(batch, result, now)
        self._put_off(outcome, now)
        if outcome.committed:
            self._on_commit(outcome.committed)
        carried = tuple(one.partition for one in batch.plan.ranges)
        self._feed(BatchEnded(outcome.committed, tuple(outcome.refused), carried))
        for partition, (reason, error) in outcome.stopped.items():
            self.standings.stop(
                partition, reason, self._ownership().readable.get(partition), str(error)
            )
        for partition, error in outcome.refused.items():
            self._log.warning("ledger_refused", partition=str(partition), error=str(error))
        if outcome.out_of_range:
            self._look_behind_holes(outcome)
        follows_at_once = batch.plan.is_full and not outcome.put_off
        diary.next_look_s = (
            now
            if follows_at_once
            else max(now, batch.began_s + self._settings.consumer.batch_period)
        )

    def _take_stock(self, batch: _Batch, result: BatchResult, now: float) -> None:
        progress = self.progress
        log_bytes = 0.0
        offsets = 0
        for one in batch.plan.ranges:
            if one.partition in result.carried and one.partition in progress.rows:
                progress.carried(one.partition, one.start, one.end)
                log_bytes += len(one) * progress.weight(one.partition)
                offsets += len(one)
        progress.batches += 1
        progress.records += result.records
        progress.decoded_bytes += result.decoded_bytes
        progress.log_bytes += log_bytes
        progress.read_s += result.timings.read_s
        progress.transform_s += result.timings.transform_s
        progress.write_s += result.timings.write_s
        progress.commit_s += result.timings.commit_s
        if not offsets:
            return
        progress.decoded_bytes_per_offset = result.decoded_bytes / offsets
        # The first batch warms Spark up: it says nothing of what this consumer can carry.
        is_telling = batch.is_full and self._pace.is_warm
        self.estimate.add(log_bytes, now - batch.since_s, was_full=is_telling)
        self._pace = self._pace.after(
            planned_bytes=batch.plan.size_bytes, seconds=now - batch.began_s, was_full=batch.is_full
        )
        self._log.debug(
            "batch_carried",
            records=result.records,
            seconds=round(now - batch.began_s, 3),
            commit_ms=round(result.timings.commit_s * 1000),
            is_full=batch.is_full,
        )

    def _put_off(self, outcome: BatchOutcome, now: float) -> None:
        for partition in outcome.put_off:
            if partition in self.progress.rows:
                self.progress.put_off(partition, now, is_unsettled=True)
        for said in sorted({str(error) for error in outcome.put_off.values()}):
            self._log.warning("batch_put_off", error=said, partitions=len(outcome.put_off))
        if not outcome.spark_failed:
            self._diary.spark_failures = 0
            return
        self._diary.spark_failures += 1
        if self._settings.spark.master.startswith("sc://"):
            self.start_spark()
        elif self._diary.spark_failures >= LOCAL_SPARK_FAILURES_MAX:
            raise next(iter(outcome.put_off.values()))  # its JVM is gone: the next life has another

    def _look_behind_holes(self, outcome: BatchOutcome) -> None:
        """The operator chose to go on behind what retention removed, and to be told."""
        holes = sorted(outcome.out_of_range)
        self._looking.ask(
            lambda: self._world.start_offsets(holes), self._skip_holes, self._not_looked
        )

    def _skip_holes(self, starts: Mapping[TopicPartition, int]) -> None:
        readable = self._ownership().readable
        for partition, start in sorted(starts.items()):
            if partition in readable and partition in self.progress.rows:
                lost = f"skipped offsets {readable[partition]} to {start}: retention removed them"
                self._log.error("hole_skipped", partition=str(partition), error=lost)
                reason = StopReason.OFFSET_OUT_OF_RANGE
                self.progress.note_failure(partition, reason, readable[partition], lost)
                self.progress.rows[partition].hole_end = start
        self._look_soon()
