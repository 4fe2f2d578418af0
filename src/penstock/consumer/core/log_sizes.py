"""When to measure how many log bytes one offset of each partition stands for."""

from collections.abc import Iterable, Iterator

from penstock.consumer.core.effects import ReadLogSizes
from penstock.consumer.core.inputs import LogSizesNotRead, LogSizesRead
from penstock.consumer.core.state import LogSizes
from penstock.consumer.core.step_draft import StepDraft
from penstock.model import TopicPartition
from penstock.model.changed import changed

PERIOD_MS = 30_000
# While the size of a partition with records is not known.
UNKNOWN_PERIOD_MS = 2_000


def due_times_ms(draft: StepDraft) -> Iterator[int]:
    if draft.progress and not draft.log_sizes.is_reading:
        yield draft.log_sizes.next_ms


def ask(draft: StepDraft) -> None:
    sizes = draft.log_sizes
    if draft.progress and not sizes.is_reading and draft.now_ms >= sizes.next_ms:
        draft.log_sizes = changed(sizes, is_reading=True)
        draft.do(ReadLogSizes(tuple(sorted(draft.progress))))


def are_known(draft: StepDraft, partitions: Iterable[TopicPartition]) -> bool:
    """Whether batches of these can be weighed: by their logs, or where Kafka refuses that."""
    return draft.log_sizes.is_refused or all(
        draft.progress[partition].log_bytes_per_offset is not None for partition in partitions
    )


def read(draft: StepDraft, given: LogSizesRead) -> None:
    for partition, size in given.bytes_per_offset.items():
        if partition in draft.progress:
            row = draft.progress[partition]
            draft.progress[partition] = changed(row, log_bytes_per_offset=size)
    is_unknown = any(_lacks_size(draft, partition) for partition in draft.progress)
    period_ms = UNKNOWN_PERIOD_MS if is_unknown else PERIOD_MS
    draft.log_sizes = LogSizes(next_ms=draft.now_ms + period_ms)


def _lacks_size(draft: StepDraft, partition: TopicPartition) -> bool:
    """An empty log has no size, and nobody needs one: quiet topics cost no questions."""
    row = draft.progress[partition]
    if row.log_bytes_per_offset is not None:
        return False
    return row.last_batch_number > 0 or row.end_offset != draft.owned[partition].next_offset


def first_batch_begins(draft: StepDraft, partition: TopicPartition) -> None:
    """A log that was empty has records now: soon there is a size to ask for."""
    if draft.progress[partition].log_bytes_per_offset is None:
        sizes, soon_ms = draft.log_sizes, draft.now_ms + UNKNOWN_PERIOD_MS
        draft.log_sizes = changed(sizes, next_ms=min(sizes.next_ms, soon_ms))


def not_read(draft: StepDraft, given: LogSizesNotRead) -> None:
    """Sizes are then taken from the decoded records."""
    draft.log_sizes = LogSizes(next_ms=draft.now_ms + PERIOD_MS, is_refused=True)
    draft.log_failure("log_sizes_unknown", given.error, instead="decoded bytes")
