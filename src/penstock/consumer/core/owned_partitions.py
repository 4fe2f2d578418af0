"""How an owned partition begins to be read, goes on after a batch, and is given up.

Offsets come from the ledger alone: a start reads it, and it refuses a commit that is late.
"""

from collections.abc import Collection, Mapping

from penstock.consumer.core.effects import LogLevel
from penstock.consumer.core.inputs import LedgerEntry
from penstock.consumer.core.partition_progress import PartitionProgress
from penstock.consumer.core.step_draft import StepDraft
from penstock.messages import StopReason
from penstock.model import TopicPartition
from penstock.model.changed import changed


def start_reading(draft: StepDraft, partition: TopicPartition, entry: LedgerEntry) -> None:
    """The ledger entry of a partition that is to be started was read."""
    owned = draft.owned[partition]
    if entry.last_epoch is not None and entry.last_epoch > owned.epoch:
        # Another consumer was started after us: we were paused and fenced meanwhile.
        draft.end(partition, StopReason.LEDGER_REFUSED)
        return
    if entry.is_truncated:
        _give_up_truncated(draft, partition, entry)
        return
    del draft.lookups[partition]
    draft.failed.pop(partition, None)
    draft.progress[partition] = PartitionProgress(
        entry.topic_id, entry.ledger_offset, leader_epoch=entry.leader_epoch
    )
    draft.owned[partition] = changed(owned, next_offset=entry.next_offset)
    draft.events.started(partition, owned.epoch, entry.next_offset)


def settle(draft: StepDraft, partition: TopicPartition, entry: LedgerEntry) -> None:
    """The ledger says whether a batch of unknown outcome was committed."""
    owned, row = draft.owned[partition], draft.progress[partition]
    if entry.topic_id != row.topic_id:
        reason = StopReason.TOPIC_MADE_AGAIN
        give_up(draft, partition, reason, owned.next_offset, "the topic was made again")
        return
    if entry.is_truncated:
        _give_up_truncated(draft, partition, entry)
        return
    draft.progress[partition] = row.settled(entry.ledger_offset)
    if entry.ledger_offset is None:
        return
    if entry.last_epoch is not None and entry.last_epoch > owned.epoch:
        draft.end(partition, StopReason.LEDGER_REFUSED)
    else:
        draft.owned[partition] = changed(owned, next_offset=entry.ledger_offset)


def _give_up_truncated(draft: StepDraft, partition: TopicPartition, entry: LedgerEntry) -> None:
    offset, end = entry.ledger_offset, entry.leader_epoch_end
    if end is None or end < 0:
        lost = f"Kafka forgot leader epoch {entry.leader_epoch}, carried up to offset {offset}"
    else:
        lost = f"leader epoch {entry.leader_epoch} ends at {end}, below the ledger's {offset}"
    give_up(draft, partition, StopReason.LOG_TRUNCATED, offset, lost)


def enter_batch(draft: StepDraft, partitions: Collection[TopicPartition]) -> None:
    """They cannot be stopped until the batch ends."""
    for partition in partitions:
        draft.owned[partition] = changed(draft.owned[partition], is_in_batch=True)


def leave_batch(
    draft: StepDraft,
    partitions: Collection[TopicPartition],
    *,
    committed: Mapping[TopicPartition, int],
    refused: Collection[TopicPartition],
) -> None:
    """Commits move on. A refused partition is given up at once: another consumer writes it."""
    for partition in sorted(partitions):
        owned = draft.owned[partition]
        next_offset = committed.get(partition, owned.next_offset)
        owned = draft.owned[partition] = changed(owned, next_offset=next_offset, is_in_batch=False)
        if partition in refused:
            draft.end(partition, StopReason.LEDGER_REFUSED)
        elif owned.ending is not None:
            draft.end(partition, owned.ending)
        elif owned.next_epoch is not None:
            draft.begin(partition, owned.next_epoch)


def give_up(
    draft: StepDraft,
    partition: TopicPartition,
    reason: StopReason,
    offset: int | None,
    detail: str,
) -> None:
    """Stop a partition that cannot be read on; the others go on."""
    draft.log(
        LogLevel.ERROR, "partition_stopped", partition=str(partition), reason=reason, error=detail
    )
    draft.note_failure(partition, reason, offset, detail)
    if partition in draft.owned:
        draft.end(partition, reason, detail)


def give_up_all(draft: StepDraft) -> None:
    """For a shutdown: what is in a batch waits for its end."""
    for partition in sorted(draft.owned):
        owned = draft.owned[partition]
        draft.owned[partition] = changed(owned, ending=StopReason.SHUTDOWN, next_epoch=None)
        if not owned.is_in_batch:
            draft.end(partition, StopReason.SHUTDOWN)
