"""When to read the ledger, and what its entries mean.

It is read for a partition that is to be started, and again when a batch ended without a known
outcome. What Kafka or the lake does not answer is asked again, at growing intervals; if it is away
for all, the intervals stay short.
"""

from collections import Counter
from collections.abc import Iterator

from penstock.consumer.core import owned_partitions
from penstock.consumer.core.effects import LogLevel, ReadLedger
from penstock.consumer.core.inputs import LedgerNotRead, LedgerRead
from penstock.consumer.core.occupation import begin_wait, end_wait
from penstock.consumer.core.partition_progress import next_retry
from penstock.consumer.core.state import LedgerLookup
from penstock.consumer.core.step_draft import StepDraft
from penstock.messages import StopReason, WaitsFor
from penstock.model import TopicPartition
from penstock.model.changed import changed


def due_times_ms(draft: StepDraft) -> Iterator[int]:
    if not draft.is_reading_ledger:
        yield from (lookup.not_before_ms for lookup in draft.lookups.values())
        yield from (row.not_before_ms for row in draft.progress.values() if row.is_unsettled)


def ask(draft: StepDraft) -> None:
    """Ask for everything that is due, at most one read at a time."""
    if draft.is_reading_ledger:
        return
    now = draft.now_ms
    wanted = {one for one, lookup in draft.lookups.items() if lookup.not_before_ms <= now}
    wanted |= {
        one for one, row in draft.progress.items() if row.is_unsettled and row.not_before_ms <= now
    }
    if wanted:
        draft.is_reading_ledger = True
        draft.do(ReadLedger({one: draft.owned[one].epoch for one in sorted(wanted)}))


def read(draft: StepDraft, given: LedgerRead) -> None:
    """An answer for an older epoch than the one owned now is ignored, and asked again."""
    draft.is_reading_ledger = False
    by_reason = Counter(str(error) for error in given.failures.values())
    for reason, partitions in sorted(by_reason.items()):
        draft.log(LogLevel.WARNING, "ledger_not_read", partitions=partitions, error=reason)
    for what in (WaitsFor.LAKE, WaitsFor.KAFKA):
        if given.failures and what is given.waits_for:
            begin_wait(draft, what)
        else:
            end_wait(draft, what)
    for partition, epoch in given.asked.items():
        owned = draft.owned.get(partition)
        if owned is None or owned.epoch != epoch:
            continue
        entry = given.entries.get(partition)
        if partition in given.failures:
            _put_off(draft, partition, given.shared)
        elif entry is None:
            _missing(draft, partition)
        elif partition in draft.lookups:
            owned_partitions.start_reading(draft, partition, entry)
        else:
            owned_partitions.settle(draft, partition, entry)
    if any(row.log_bytes_per_offset is None for row in draft.progress.values()):
        # Of what is known nothing is asked: after an outage the look for records would wait for it.
        sizes = draft.log_sizes
        draft.log_sizes = changed(sizes, next_ms=min(sizes.next_ms, draft.now_ms))
    draft.look_soon()


def _missing(draft: StepDraft, partition: TopicPartition) -> None:
    """One that is missing for long is deleted.

    A new partition is not known to every broker at once, and a topic that is being made again is
    away for a moment.
    """
    if partition in draft.lookups:
        since_ms = draft.lookups[partition].since_ms
    else:
        row = draft.progress[partition]
        since_ms = draft.now_ms if row.missing_since_ms is None else row.missing_since_ms
        draft.progress[partition] = changed(row, missing_since_ms=since_ms)
    if draft.now_ms - since_ms < draft.settings.missing_partition_wait_ms:
        _put_off(draft, partition)
        return
    offset, gone = draft.owned[partition].next_offset, "Kafka does not have it any more"
    owned_partitions.give_up(draft, partition, StopReason.TOPIC_DELETED, offset, gone)


def _again(draft: StepDraft, lookup: LedgerLookup, shared: WaitsFor | None) -> LedgerLookup:
    failures, wait_ms = next_retry(draft.settings, lookup.failures, shared)
    not_before_ms = draft.now_ms + wait_ms
    return changed(lookup, failures=failures, not_before_ms=not_before_ms, shared=shared)


def not_read(draft: StepDraft, given: LedgerNotRead) -> None:
    draft.is_reading_ledger = False
    begin_wait(draft, given.waits_for)
    draft.log_failure("ledger_not_read", given.error, partitions=len(given.asked))
    for partition in given.asked:
        _put_off(draft, partition, given.shared)


def _put_off(draft: StepDraft, partition: TopicPartition, shared: WaitsFor | None = None) -> None:
    if partition in draft.lookups:
        draft.lookups[partition] = _again(draft, draft.lookups[partition], shared)
    elif partition in draft.progress:
        row = draft.progress[partition]
        draft.progress[partition] = row.put_off(draft.settings, draft.now_ms, shared)
