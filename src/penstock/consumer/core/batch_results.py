"""What the end of a batch means: for each of its partitions, for Spark, and for the next batch.

A failure of one partition stays with that partition.
"""

from collections.abc import Mapping

from penstock.consumer.core import log_sizes, owned_partitions, spark
from penstock.consumer.core.cadence import batch_period_ms
from penstock.consumer.core.effects import LogLevel, ReadStartOffsets, WriteGroupOffsets
from penstock.consumer.core.inputs import (
    BatchEnded,
    PartitionFailure,
    StartOffsetsNotRead,
    StartOffsetsRead,
)
from penstock.consumer.core.pace import CapacityEstimate, Pace
from penstock.consumer.core.partition_progress import WorkDone
from penstock.consumer.core.state import BatchState, RunningBatch
from penstock.consumer.core.step_draft import StepDraft
from penstock.consumer.core.topic_capacity import owned_topics
from penstock.messages import StopReason
from penstock.model import TopicPartition
from penstock.model.changed import changed

# Of the time, or of the bytes, that a batch behind a backlog may take; and the most of its time
# that the fixed cost may be.
_TELLING_SHARE = 0.5

Failures = Mapping[TopicPartition, PartitionFailure]


def ended(draft: StepDraft, given: BatchEnded) -> None:
    batch = draft.batches.running
    if batch is None:
        raise AssertionError("a batch ended that never began")
    draft.batches = changed(draft.batches, running=None, ended_ms=draft.now_ms)
    _count(draft, batch, given)
    put_off = {p: failure for p, failure in given.failures.items() if failure.reason is None}
    lengths = {one.range.partition: len(one.range) for one in batch.ranges}
    _put_off(draft, put_off, lengths)
    spark.batch_ended(draft, {p: one for p, one in put_off.items() if _is_lost(one, lengths[p])})
    if given.committed:
        draft.do(WriteGroupOffsets(given.committed))
    refused = _with_reason(given.failures, StopReason.LEDGER_REFUSED)
    owned_partitions.leave_batch(
        draft,
        [one.range.partition for one in batch.ranges],
        committed=given.committed,
        refused=refused,
    )
    for partition, failure in refused.items():
        draft.log(
            LogLevel.WARNING,
            "ledger_refused",
            partition=str(partition),
            error=str(failure.error),
        )
    _stop_failed(draft, given.failures)
    follows_at_once = batch.leaves_records and not put_off
    settings, round_s = draft.settings, given.commit_round_s
    next_ms = batch.began_ms + batch_period_ms(
        round_s, settings.batch_period_ms, settings.batch_period_longest_ms
    )
    draft.batches = changed(
        draft.batches,
        next_look_ms=draft.now_ms if follows_at_once else max(draft.now_ms, next_ms),
    )


def _with_reason(failures: Failures, reason: StopReason) -> dict[TopicPartition, PartitionFailure]:
    return {p: failures[p] for p in sorted(failures) if failures[p].reason is reason}


def _count(draft: StepDraft, batch: RunningBatch, given: BatchEnded) -> None:
    """Add what was carried to the progress, the report and the estimates."""
    log_bytes = {one.range.partition.topic: 0.0 for one in batch.ranges}
    offsets, batches = 0, draft.batches
    for one in batch.ranges:
        partition, start = one.range.partition, one.range.start
        if partition in given.committed:
            row = draft.progress[partition]
            end = given.committed[partition]
            size = (end - start) * row.size_of_offset(batches.decoded_bytes_per_offset)
            draft.progress[partition] = row.carried(start, end, size)
            log_bytes[partition.topic] += size
            offsets += end - start
    carried_bytes = sum(log_bytes.values())
    draft.work += WorkDone(1, given.records, given.decoded_bytes, carried_bytes, given.times)
    if not offsets:
        return
    seconds = (draft.now_ms - batch.began_ms) / 1000
    draft.batches = _with_capacity(draft, batch, log_bytes)
    pace = batches.pace.after(
        planned_bytes=batch.size_bytes, seconds=seconds, was_full=batch.is_full
    )
    draft.batches = changed(
        draft.batches,
        decoded_bytes_per_offset=given.decoded_bytes / offsets,
        # A batch of one topic alone says nothing about the size of ordinary ones.
        pace=batches.pace if batch.is_alone else pace,
    )
    draft.log(
        LogLevel.DEBUG,
        "batch_carried",
        records=given.records,
        seconds=seconds,
        commit_ms=round(given.times.commit_s * 1000),
        is_full=batch.is_full,
    )


def _with_capacity(
    draft: StepDraft, batch: RunningBatch, log_bytes: Mapping[str, float]
) -> BatchState:
    """What the batch, with so many bytes of each topic, shows of the capacity.

    The first batch warms Spark up, and the first of a topic what its transformation needs: their
    times say nothing. Nor does a batch whose logs are not weighed yet: decoded bytes are others. Of
    a full one the pause before it counts.
    """
    batches = draft.batches
    partitions = [one.range.partition for one in batch.ranges]
    topics = log_bytes.keys()
    was_full = batch.is_full and is_telling(batch, batches.pace, draft.now_ms)
    since_ms = batch.since_ms if was_full else batch.began_ms
    seconds = (draft.now_ms - since_ms) / 1000
    by_topic, owned = batches.topic_capacities, owned_topics(draft.owned)
    capacity = batches.capacity if owned == batches.capacity_topics else CapacityEstimate()
    if batches.pace.is_warm and log_sizes.are_known(draft, partitions):
        if topics <= by_topic.warm and not batch.is_alone:
            capacity = capacity.after(sum(log_bytes.values()), seconds, was_full=was_full)
        by_topic = by_topic.after(log_bytes, seconds, was_full=was_full)
    else:
        by_topic = changed(by_topic, warm=by_topic.warm.union(topics))
    return changed(batches, capacity=capacity, capacity_topics=owned, topic_capacities=by_topic)


def is_telling(batch: RunningBatch, pace: Pace, now_ms: int) -> bool:
    """Whether its speed is that of its records: most of a short batch's time is its fixed cost.

    Ordinary batches grow until they take their time. The first of one topic alone are short.
    """
    if not batch.is_alone:
        return True
    seconds, limits = (now_ms - batch.began_ms) / 1000, pace.limits
    is_long = seconds >= _TELLING_SHARE * limits.backlog_batch_time_s
    is_large = batch.size_bytes >= _TELLING_SHARE * limits.batch_bytes
    return (is_long or is_large) and seconds * _TELLING_SHARE >= pace.fixed_s


def _is_lost(failure: PartitionFailure, offsets: int) -> bool:
    """A Spark that has not the memory for one record more is as good as lost."""
    return failure.is_spark_lost or (failure.is_out_of_memory and offsets <= 1)


def _put_off(draft: StepDraft, put_off: Failures, lengths: Mapping[TopicPartition, int]) -> None:
    for partition, failure in put_off.items():
        row = draft.progress[partition].put_off(draft.settings, draft.now_ms, failure.shared)
        is_too_large = failure.is_out_of_memory
        draft.progress[partition] = row.halved(lengths[partition]) if is_too_large else row
    for text in sorted({str(failure.error) for failure in put_off.values()}):
        draft.log(LogLevel.WARNING, "batch_put_off", error=text, partitions=len(put_off))


def _stop_failed(draft: StepDraft, failures: Failures) -> None:
    """Give up what cannot be read on; or look where the log goes on, if the settings say so."""
    holes = []
    readable = draft.readable
    for partition, failure in sorted(failures.items(), key=lambda item: item[0]):
        reason = failure.reason
        if reason is StopReason.OFFSET_OUT_OF_RANGE and draft.settings.skips_holes:
            holes.append(partition)
        elif reason is not None and reason is not StopReason.LEDGER_REFUSED:
            offset = readable.get(partition)
            owned_partitions.give_up(draft, partition, reason, offset, str(failure.error))
    if holes:
        draft.do(ReadStartOffsets(tuple(holes)))


def start_offsets_read(draft: StepDraft, given: StartOffsetsRead) -> None:
    """Go on after what retention removed, and report what was skipped."""
    readable = draft.readable
    for partition, start in sorted(given.starts.items()):
        if partition not in readable:
            continue
        offset = readable[partition]
        skipped = f"skipped offsets {offset} to {start}: retention removed them"
        draft.log(LogLevel.ERROR, "hole_skipped", partition=str(partition), error=skipped)
        draft.note_failure(partition, StopReason.OFFSET_OUT_OF_RANGE, offset, skipped)
        draft.progress[partition] = changed(draft.progress[partition], hole_end=start)
    draft.look_soon()


def start_offsets_not_read(draft: StepDraft, given: StartOffsetsNotRead) -> None:
    """The next batch fails in the same place, and asks again."""
    draft.batches = changed(draft.batches, next_look_ms=draft.now_ms + draft.settings.idle_wait_ms)
    draft.log_failure("start_offsets_unknown", given.error)
