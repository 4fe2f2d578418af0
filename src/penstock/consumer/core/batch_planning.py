"""When to look for new records, and which of them the next batch carries.

At most one look and one batch are under way. Full batches follow at once; without a backlog they
begin one batch period apart; without records the looks become rarer up to `idle_wait`.
"""

from collections.abc import Iterator

from penstock.consumer.core import log_sizes, owned_partitions
from penstock.consumer.core.effects import CarryBatch, LogLevel, RangeToCarry, ReadEnds
from penstock.consumer.core.inputs import EndsNotRead, EndsRead
from penstock.consumer.core.occupation import begin_wait, end_wait
from penstock.consumer.core.pace import FIRST_BUDGET_BYTES, Allowance, Pace, PaceLimits
from penstock.consumer.core.partition_progress import waiting
from penstock.consumer.core.ranges import RangePlan, plan_ranges
from penstock.consumer.core.settings import CoreSettings
from penstock.consumer.core.state import BatchState, RunningBatch
from penstock.consumer.core.step_draft import StepDraft
from penstock.messages import StopReason, WaitsFor
from penstock.model import TopicPartition
from penstock.model.changed import changed

IDLE_WAIT_FIRST_MS = 100
# A limited consumer collects at least this much of its capacity before it begins a batch.
_WORTH_MS_MIN = 100
# A batch that begins sooner than this after a full one counts as following at once.
_FOLLOWS_MS = 1_000
# A batch that is smaller than this share of its budget does not show what the consumer can carry.
_FULL_SHARE = 0.5
# A batch that carries all there is and is no larger than this is read by one task for each table,
# so that each table gets one file: it takes a fraction of a second all the same.
CALM_BATCH_BYTES = 16 * 2**20


def first_batch_state(settings: CoreSettings) -> BatchState:
    limits = PaceLimits(
        settings.batch_bytes, settings.batch_time_ms / 1000, settings.backlog_batch_time_ms / 1000
    )
    # It must be able to save what it waits for, or it would wait for ever.
    saved_ms_max = max(settings.backlog_batch_time_ms, _worth_ms(settings))
    return BatchState(
        pace=Pace(limits, budget_bytes=min(FIRST_BUDGET_BYTES, settings.batch_bytes)),
        allowance=Allowance(settings.capacity_bytes_per_s, saved_s_max=saved_ms_max / 1000),
        idle_wait_ms=_idle_wait_first_ms(settings),
    )


def _idle_wait_first_ms(settings: CoreSettings) -> int:
    return min(IDLE_WAIT_FIRST_MS, settings.idle_wait_ms)


def _worth_ms(settings: CoreSettings) -> int:
    return max(_WORTH_MS_MIN, settings.batch_period_ms)


def due_times_ms(draft: StepDraft) -> Iterator[int]:
    if _may_look(draft):
        yield draft.batches.next_look_ms


def look(draft: StepDraft) -> None:
    """Ask how far the logs reach, if that is due."""
    if _may_look(draft) and draft.now_ms >= draft.batches.next_look_ms:
        draft.batches = changed(draft.batches, is_looking=True)
        draft.do(ReadEnds(tuple(sorted(draft.readable))))


def _may_look(draft: StepDraft) -> bool:
    batches = draft.batches
    return (
        draft.spark.is_ready
        and batches.running is None
        and not batches.is_looking
        and not draft.own.is_shutting_down
        and bool(draft.readable)
    )


def ends_not_read(draft: StepDraft, given: EndsNotRead) -> None:
    begin_wait(draft, WaitsFor.KAFKA)
    draft.batches = changed(
        draft.batches,
        is_looking=False,
        looks_again=False,
        next_look_ms=draft.now_ms + draft.settings.idle_wait_ms,
    )
    draft.log_failure("ends_unknown", given.error)


def ends_read(draft: StepDraft, given: EndsRead) -> None:
    """Begin a batch with what can be read now, or wait."""
    looks_again = draft.batches.looks_again
    draft.batches = batches = changed(draft.batches, is_looking=False, looks_again=False)
    end_wait(draft, WaitsFor.KAFKA)
    _note_answers(draft, given)
    if draft.own.is_shutting_down:
        return
    found = waiting(draft.progress, draft.readable, batches.decoded_bytes_per_offset, draft.now_ms)
    there_bytes = sum(one.size_bytes for one in found.values())
    if not there_bytes:
        if not looks_again:
            _wait_idle(draft)
        return
    allowance = batches.allowance.at(draft.now_ms)
    batches = changed(
        batches, allowance=allowance, idle_wait_ms=_idle_wait_first_ms(draft.settings)
    )
    # With a capacity that is set, a batch waits until it is worth its cost.
    worth = allowance.capacity_bytes_per_s * _worth_ms(draft.settings) / 1000
    wait_ms = allowance.wait_ms(min(there_bytes, worth))
    if wait_ms > 0:
        draft.batches = changed(batches, next_look_ms=draft.now_ms + wait_ms)
        return
    draft.batches = batches
    alone = None
    if draft.settings.measures_topics:
        alone = batches.topic_capacities.to_measure(found, batches.pace, draft.now_ms)
    if alone is None or allowance.limit(alone[1]) < alone[1]:
        budget = batches.pace.budget_bytes
        _begin(draft, plan_ranges(found, max(allowance.limit(budget), 1.0)), budget, None)
    else:
        topic, budget = alone
        of_topic = {partition: one for partition, one in found.items() if partition.topic == topic}
        _begin(draft, plan_ranges(of_topic, max(budget, 1.0)), budget, topic)


def _note_answers(draft: StepDraft, given: EndsRead) -> None:
    for partition in draft.readable:
        _note_log(draft, partition, given)
    for partition in draft.progress.keys() & given.failures.keys():
        # By its old end, every batch would wait for a partition that does not answer.
        draft.progress[partition] = changed(draft.progress[partition], end_offset=None)
    if given.failures:
        first = given.failures[min(given.failures)]
        draft.log_failure("ends_unknown", first, partitions=len(given.failures))
    # Made once: it takes time with every partition.
    readable = draft.readable
    for partition, end in given.ends.items():
        if partition in draft.progress:
            _note_end(draft, partition, readable.get(partition), end)


def _wait_idle(draft: StepDraft) -> None:
    wait_ms = draft.batches.idle_wait_ms
    draft.batches = changed(
        draft.batches,
        next_look_ms=draft.now_ms + wait_ms,
        idle_wait_ms=min(2 * wait_ms, draft.settings.idle_wait_ms),
    )


def _note_end(
    draft: StepDraft, partition: TopicPartition, next_offset: int | None, end: int
) -> None:
    """A log that ends below what was carried has lost records, or is another topic's.

    The ledger look-up says whether the topic was made again. If it was not, and the end stays
    below for `short_log_wait`, the partition is stopped: new records would take offsets that
    count as carried.
    """
    row = draft.progress[partition]
    if next_offset is None or end >= next_offset:
        if row.end_offset != end or row.short_since_ms is not None:
            draft.progress[partition] = changed(row, end_offset=end, short_since_ms=None)
        return
    row = changed(row, end_offset=end)
    if row.is_unsettled or row.not_before_ms > draft.now_ms:
        draft.progress[partition] = row
        return
    # From here on a look-up follows, so that the topic's id is newer than the first short end.
    since_ms = draft.now_ms if row.short_since_ms is None else row.short_since_ms
    if draft.now_ms - since_ms >= draft.settings.short_log_wait_ms:
        lost = f"the log ends at {end}, {next_offset - end} below the ledger's {next_offset}"
        reason = StopReason.LOG_TRUNCATED
        owned_partitions.give_up(draft, partition, reason, next_offset, lost)
        return
    draft.progress[partition] = changed(
        row.put_off(draft.settings, draft.now_ms), short_since_ms=since_ms
    )
    draft.log(
        LogLevel.WARNING,
        "log_ends_early",
        partition=str(partition),
        end=end,
        next_offset=next_offset,
    )


def _note_log(draft: StepDraft, partition: TopicPartition, given: EndsRead) -> None:
    """After another leader was elected, or under another topic id, the ledger is read first.

    The look-up says whether the new leader's log still holds what was carried, and whether the
    topic was made again or is gone.
    """
    row = draft.progress[partition]
    epoch = given.leader_epochs.get(partition, row.leader_epoch)
    is_other_leader = row.leader_epoch is not None and epoch != row.leader_epoch
    is_other_topic = given.topic_ids.get(partition.topic, row.topic_id) != row.topic_id
    if epoch != row.leader_epoch:
        row = draft.progress[partition] = changed(row, leader_epoch=epoch)
    if is_other_leader or is_other_topic:
        draft.progress[partition] = row.doubted(draft.now_ms)


def _begin(draft: StepDraft, plan: RangePlan, budget_bytes: float, alone: str | None) -> None:
    """`alone` is the topic that the batch is to measure, and None for an ordinary batch."""
    batches, now = draft.batches, draft.now_ms
    number = batches.number + 1
    ranges = []
    for one in plan.ranges:
        row = draft.progress[one.partition]
        if row.last_batch_number == 0:
            log_sizes.first_batch_begins(draft, one.partition)
        draft.progress[one.partition] = row = changed(row, last_batch_number=number)
        epoch = draft.owned[one.partition].epoch
        ranges.append(RangeToCarry(one, row.topic_id, row.ledger_offset, epoch, row.leader_epoch))
    is_limited = any(draft.progress[one.partition].offsets_max for one in plan.ranges)
    is_full = plan.is_full and plan.size_bytes >= _FULL_SHARE * budget_bytes
    since_ms = now
    if batches.ended_ms is not None and batches.pace.full_in_a_row > 0:
        since_ms = batches.ended_ms if now - batches.ended_ms < _FOLLOWS_MS else now
    running = RunningBatch(
        ranges=tuple(ranges),
        size_bytes=plan.size_bytes,
        leaves_records=plan.is_full or is_limited or alone is not None,
        is_full=is_full,
        began_ms=now,
        since_ms=since_ms,
        is_alone=alone is not None,
    )
    draft.batches = changed(
        batches,
        number=number,
        allowance=batches.allowance.without(plan.size_bytes),
        running=running,
        topic_capacities=batches.topic_capacities.begun(alone, now),
    )
    owned_partitions.enter_batch(draft, [one.partition for one in plan.ranges])
    size = round(plan.size_bytes)
    draft.log(LogLevel.DEBUG, "batch_begins", partitions=len(ranges), log_bytes=size)
    is_calm = not running.leaves_records and plan.size_bytes <= CALM_BATCH_BYTES
    draft.do(CarryBatch(running.ranges, is_calm=is_calm))
