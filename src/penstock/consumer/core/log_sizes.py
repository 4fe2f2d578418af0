"""When to measure how many log bytes one offset of each partition stands for."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from penstock.consumer.core.effects import ReadLogSizes
from penstock.consumer.core.inputs import LogSizesNotRead, LogSizesRead
from penstock.consumer.core.state import LogSizes
from penstock.consumer.core.step_draft import StepDraft
from penstock.model import TopicPartition

PERIOD_MS = 30_000
# While the size of a partition is not known, because its log was empty.
UNKNOWN_PERIOD_MS = 2_000


def due_times_ms(draft: StepDraft) -> Iterator[int]:
    if draft.progress and not draft.log_sizes.is_reading:
        yield draft.log_sizes.next_ms


def ask(draft: StepDraft) -> None:
    sizes = draft.log_sizes
    if draft.progress and not sizes.is_reading and draft.now_ms >= sizes.next_ms:
        draft.log_sizes = replace(sizes, is_reading=True)
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
            draft.progress[partition] = replace(row, log_bytes_per_offset=size)
    is_unknown = any(row.log_bytes_per_offset is None for row in draft.progress.values())
    period_ms = UNKNOWN_PERIOD_MS if is_unknown else PERIOD_MS
    draft.log_sizes = LogSizes(next_ms=draft.now_ms + period_ms)


def not_read(draft: StepDraft, given: LogSizesNotRead) -> None:
    """Sizes are then taken from the decoded records."""
    draft.log_sizes = LogSizes(next_ms=draft.now_ms + PERIOD_MS, is_refused=True)
    draft.log_failure("log_sizes_unknown", given.error, instead="decoded bytes")
