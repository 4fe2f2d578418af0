"""Carries out what the core asks for. Nothing here decides anything.

What blocks runs in a thread of its own and comes back through the inbox as the core's next input.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from penstock.consumer.core import effects as act
from penstock.consumer.core import inputs
from penstock.consumer.process.batch_results import away_for_all, batch_ended, waits_for
from penstock.consumer.process.external_systems import ExternalSystems
from penstock.consumer.process.metrics import ConsumerMetrics
from penstock.consumer.process.outbound import OutboundMessages
from penstock.consumer.process.threads import Inbox, Worker
from penstock.kafka_io.group_offsets import GroupOffsets
from penstock.model import TopicPartition
from penstock.pipeline import BatchResult
from penstock.pipeline.table_keeper import TablesKept
from penstock.telemetry import Health

LAST_MESSAGES_S_MAX = 3.0


class EffectRunner:
    def __init__(
        self,
        systems: ExternalSystems,
        outbound: OutboundMessages,
        group: GroupOffsets | None,
        health: Health,
        metrics: ConsumerMetrics,
        inbox: Inbox,
        log: Any,
        *,
        save_mailbox_positions: Callable[[], None],
        save_controlled_end: Callable[[], None],
    ) -> None:
        self._systems = systems
        self._outbound = outbound
        self._group = group
        self._metrics = metrics
        self._inbox = inbox
        self._log = log
        self._save_controlled_end = save_controlled_end
        self._looking = Worker("looking", inbox)
        self._carrying = Worker("carrying", inbox)
        self._upkeep = Worker("upkeep", inbox)
        # The next tick is due at this time.
        self.wake_ms = 0
        self.has_ended = False
        self._runs: Mapping[type[act.Effect], Callable[[Any], None]] = {
            act.WaitUntil: self._wait_until,
            act.SendToController: lambda effect: outbound.send(effect.message),
            act.ReadLedger: self._read_ledger,
            act.ReadEnds: self._read_ends,
            act.ReadLogSizes: self._read_log_sizes,
            act.ReadStartOffsets: self._read_start_offsets,
            act.StartSpark: self._start_spark,
            act.CarryBatch: self._carry_batch,
            act.InterruptBatch: self._interrupt_batch,
            act.WriteGroupOffsets: lambda effect: self._write_group_offsets(effect.offsets),
            act.ForgetGroupOffset: self._forget_group_offset,
            act.SaveMailboxPositions: lambda _: save_mailbox_positions(),
            act.SetHealth: lambda effect: health.lacks(effect.part, effect.missing),
            act.KeepTables: self._keep_tables,
            act.RemoveOrphans: self._remove_orphans,
            act.EndControlled: self._end_controlled,
            act.Fail: self._fail,
            act.Log: lambda effect: self._write_log(effect.level, effect.event, effect.fields),
        }

    def run(self, effects: tuple[act.Effect, ...]) -> None:
        for effect in effects:
            self._runs[type(effect)](effect)

    def _wait_until(self, effect: act.WaitUntil) -> None:
        self.wake_ms = effect.at_ms

    def _write_log(self, level: act.LogLevel, event: str, fields: Mapping[str, Any]) -> None:
        getattr(self._log, level.value)(event, **fields)

    # --- Kafka and the ledger ---------------------------------------------------------------

    def _read_ledger(self, effect: act.ReadLedger) -> None:
        asked = effect.partitions
        self._looking.ask(
            lambda: self._systems.read_ledger(asked),
            lambda now, found: inputs.LedgerRead(
                now,
                asked,
                found.entries,
                found.failures,
                waits_for(*found.failures.values()),
                # Whoever answered for one of them is not away.
                None if found.entries else away_for_all(*found.failures.values()),
            ),
            lambda now, error: inputs.LedgerNotRead(
                now, error, asked, waits_for(error), away_for_all(error)
            ),
        )

    def _read_ends(self, effect: act.ReadEnds) -> None:
        self._looking.ask(
            lambda: self._systems.read_ends(effect.partitions),
            lambda now, found: inputs.EndsRead(
                now,
                found.ends.offsets,
                found.ends.failures,
                found.ends.leader_epochs,
                found.topic_ids,
            ),
            inputs.EndsNotRead,
        )

    def _read_log_sizes(self, effect: act.ReadLogSizes) -> None:
        self._looking.ask(
            lambda: self._systems.read_log_sizes(effect.partitions),
            inputs.LogSizesRead,
            inputs.LogSizesNotRead,
        )

    def _read_start_offsets(self, effect: act.ReadStartOffsets) -> None:
        self._looking.ask(
            lambda: self._systems.read_start_offsets(effect.partitions),
            inputs.StartOffsetsRead,
            inputs.StartOffsetsNotRead,
        )

    def _write_group_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._group is not None:
            self._group.write(offsets)

    def _forget_group_offset(self, effect: act.ForgetGroupOffset) -> None:
        if self._group is not None:
            self._group.forget(effect.partition)

    # --- Spark and the lake -----------------------------------------------------------------

    def _start_spark(self, effect: act.StartSpark) -> None:
        self._metrics.spark_is_asked_for()

        def started(now: int, _: None) -> inputs.Input:
            self._metrics.spark_started()
            return inputs.SparkStarted(now)

        self._carrying.ask(
            lambda: self._systems.start_spark(after_s=effect.after_ms / 1000),
            started,
            inputs.SparkNotStarted,
        )

    def _carry_batch(self, effect: act.CarryBatch) -> None:
        began_s = time.monotonic()

        def ended(now: int, result: BatchResult) -> inputs.Input:
            given = batch_ended(result, now)
            self._metrics.batch_ended(result, given, time.monotonic() - began_s)
            return given

        self._carrying.ask(
            lambda: self._systems.carry(effect.ranges, is_calm=effect.is_calm),
            ended,
            inputs.BatchCrashed,
        )

    def _interrupt_batch(self, _: act.InterruptBatch) -> None:
        """In a thread of its own: the carrying thread is busy with the batch."""

        def not_interrupted(_: int, error: Exception) -> None:
            self._log.warning("not_interrupted", error=str(error))

        Worker("interrupting", self._inbox).ask(
            self._systems.interrupt, lambda *_: None, not_interrupted
        )

    def _keep_tables(self, effect: act.KeepTables) -> None:
        def kept(now: int, done: TablesKept) -> inputs.Input:
            for one in done.reports:
                files = {"files": one.files_after, "before": one.files_before}
                self._log.debug("table_kept_up", table=one.table, **files)
            self._metrics.tables_kept(done.reports, done.processor_s)
            if done.failure is not None:
                self._metrics.tables_not_kept()
                return inputs.TablesNotKept(now, done.failure, done.processor_s)
            return inputs.TablesKept(now, done.processor_s, done.has_more)

        def not_kept(now: int, error: Exception) -> inputs.Input:
            self._metrics.tables_not_kept()
            return inputs.TablesNotKept(now, error)

        self._upkeep.ask(lambda: self._systems.keep_tables(effect.tables), kept, not_kept)

    def _remove_orphans(self, _: act.RemoveOrphans) -> None:
        def removed(_: int, files: int) -> None:
            self._log.info("orphans_removed", files=files)
            self._metrics.orphans_removed(files)

        Worker("sweeping", self._inbox).ask(
            self._systems.remove_orphans, removed, inputs.OrphansNotRemoved
        )

    # --- the end ----------------------------------------------------------------------------

    def _end_controlled(self, effect: act.EndControlled) -> None:
        """Deliver the last messages and write "controlled"; then let Spark go."""
        self.has_ended = True
        self._systems.end_upkeep()
        left_s = min(LAST_MESSAGES_S_MAX, effect.within_ms / 1000)
        deadline_s = time.monotonic() + left_s
        has_left = threading.Event()

        def leave() -> None:
            try:
                self._systems.end_commits_for_others()
            finally:
                has_left.set()

        Worker("leaving", self._inbox).ask(leave, lambda *_: None, lambda *_: None)
        self._outbound.flush(left_s)
        if self._group is not None:
            self._group.finish(left_s)
        self._save_controlled_end()
        released = threading.Event()
        Worker("ending", self._inbox).ask(
            lambda: self._systems.end_spark(then=released.set), lambda *_: None, lambda *_: None
        )
        released.wait(left_s)
        has_left.wait(max(0.0, deadline_s - time.monotonic()))

    def _fail(self, effect: act.Fail) -> None:
        raise effect.error
