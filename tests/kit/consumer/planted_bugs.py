"""Planted bugs in the consumer's core: each breaks one line, and the suite must find it."""

import dataclasses
from typing import Any

import pytest

from kit.planted_bug import PlantedBug
from penstock.consumer.core import (
    batch_planning,
    batch_results,
    ledger_lookup,
    occupation,
    owned_partitions,
    partition_progress,
    shutdown,
    spark,
    state_machine,
)
from penstock.consumer.core.partition_progress import PartitionProgress
from penstock.consumer.core.state import Spark
from penstock.messages import StopReason


def replace_handler(patch: pytest.MonkeyPatch, right: Any, wrong: Any) -> None:
    """The table of the core holds the functions themselves."""
    table = {
        key: wrong if handler is right else handler
        for key, handler in state_machine.HANDLERS.items()
    }
    assert wrong in table.values()
    patch.setattr(state_machine, "HANDLERS", table)


def _looks_without_a_pause(patch: pytest.MonkeyPatch) -> None:
    right = batch_planning._wait_idle

    def wait_idle(draft: Any) -> None:
        wait_ms = draft.batches.idle_wait_ms
        right(draft)
        draft.batches = dataclasses.replace(draft.batches, idle_wait_ms=wait_ms)

    patch.setattr(batch_planning, "_wait_idle", wait_idle)


def _batch_not_noted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(owned_partitions, "enter_batch", lambda *_: None)


def _unknown_outcome_read_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(batch_results, "_put_off", lambda *_: None)


def _stopped_twice(patch: pytest.MonkeyPatch) -> None:
    right = owned_partitions.give_up

    def give_up(draft: Any, partition: Any, reason: Any, offset: Any, detail: str) -> None:
        if partition not in draft.owned:
            epoch = draft.ended[partition]
            draft.events.stopped(partition, epoch, offset, StopReason.COMMANDED, detail)
        right(draft, partition, reason, offset, detail)

    patch.setattr(owned_partitions, "give_up", give_up)


def _older_answer_used(patch: pytest.MonkeyPatch) -> None:
    right = ledger_lookup.read

    def read(draft: Any, given: Any) -> None:
        asked = {p: draft.owned[p].epoch for p in given.asked if p in draft.owned}
        right(draft, dataclasses.replace(given, asked=asked))

    replace_handler(patch, right, read)


def _look_up_repeated_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_lookup, "next_retry", lambda _, failures, __: (failures, 0))


def _retried_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partition_progress, "retry_wait_ms", lambda *_: 0)


def _wait_not_cut_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(occupation, "_cut_waits_short", lambda *_: None)


def _outage_counts_as_own(patch: pytest.MonkeyPatch) -> None:
    right = partition_progress.next_retry

    def next_retry(settings: Any, failures: int, _: Any) -> tuple[int, int]:
        return right(settings, failures, None)

    for module in (partition_progress, ledger_lookup, spark):
        patch.setattr(module, "next_retry", next_retry)


def _absent_server_ends_the_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spark, "UnreachableError", ())


def _ledger_offset_not_moved(patch: pytest.MonkeyPatch) -> None:
    right = PartitionProgress.carried

    def carried(self: PartitionProgress, start: int, end: int, size: float) -> PartitionProgress:
        after = right(self, start, end, size)
        return dataclasses.replace(after, ledger_offset=self.ledger_offset)

    patch.setattr(PartitionProgress, "carried", carried)


def _lost_spark_counts_as_up(patch: pytest.MonkeyPatch) -> None:
    def still_up(*, is_ready: bool, failures: int) -> Spark:
        return Spark(is_ready=not is_ready, failures=failures)

    patch.setattr(spark, "Spark", still_up)


def _lost_jvm_endured(patch: pytest.MonkeyPatch) -> None:
    right = spark.batch_ended

    def batch_ended(draft: Any, put_off: Any) -> None:
        draft.settings = dataclasses.replace(draft.settings, local_spark_failures_max=10**9)
        right(draft, put_off)

    patch.setattr(spark, "batch_ended", batch_ended)


def _shutdown_leaves_its_batch(patch: pytest.MonkeyPatch) -> None:
    def give_up_all(draft: Any) -> None:
        for partition in sorted(draft.owned):
            draft.end(partition, StopReason.SHUTDOWN)

    patch.setattr(owned_partitions, "give_up_all", give_up_all)


def _shutdown_waits_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shutdown, "watch", lambda _: None)


CONSUMER_BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "empty looks without a pause",
        "looks that find nothing never become rarer",
        _looks_without_a_pause,
    ),
    PlantedBug("batch not noted", "a partition in a batch can be stopped", _batch_not_noted),
    PlantedBug(
        "unknown outcome read on",
        "after an unknown outcome the ledger is not read",
        _unknown_outcome_read_on,
    ),
    PlantedBug(
        "stopped twice", "a failure of a partition that was stopped stops it again", _stopped_twice
    ),
    PlantedBug(
        "older answer used", "the ledger's answer for a former start is used", _older_answer_used
    ),
    PlantedBug(
        "look-up repeated at once",
        "a failed look-up is repeated without a pause",
        _look_up_repeated_at_once,
    ),
    PlantedBug("retried at once", "a put-off partition is tried again at once", _retried_at_once),
    PlantedBug(
        "wait not cut short",
        "what waited for Kafka waits on when Kafka is back",
        _wait_not_cut_short,
    ),
    PlantedBug(
        "outage counts as own",
        "the longer Kafka is away, the longer it is not asked for",
        _outage_counts_as_own,
    ),
    PlantedBug(
        "absent server ends the process",
        "a consumer that starts before Spark ends",
        _absent_server_ends_the_process,
    ),
    PlantedBug(
        "ledger offset not moved",
        "the next commit expects what the ledger held before the last one",
        _ledger_offset_not_moved,
    ),
    PlantedBug(
        "lost Spark counts as up", "batches begin while Spark is lost", _lost_spark_counts_as_up
    ),
    PlantedBug("lost JVM endured", "a consumer goes on without its JVM", _lost_jvm_endured),
    PlantedBug(
        "shutdown leaves its batch",
        "a shutdown does not wait for the running batch",
        _shutdown_leaves_its_batch,
    ),
    PlantedBug(
        "shutdown waits for ever",
        "a batch that hangs holds a shutdown up",
        _shutdown_waits_for_ever,
    ),
)
