"""What waits in the logs of all partitions, also of those that nobody reads.

A consumer that reports says it best; what was written since it last looked, while a batch runs, the
monitor knows. Where no consumer reports, the end that the monitor measured and the ledger's next
offset say it. Without an offset the whole log counts, as the most that can wait.
"""

from dataclasses import dataclass

from penstock.controller.core.inputs import LogExtent
from penstock.controller.core.state import ConsumerRecord, Holding, State
from penstock.model import ConsumerId, TopicPartition


@dataclass(frozen=True, slots=True)
class Waiting:
    """Records that are written and not carried. `log_bytes` is None where it is unknown."""

    records: int
    log_bytes: float | None
    is_at_most: bool = False


@dataclass(frozen=True, slots=True)
class GroupWaiting:
    """All that waits: for each consumer, and for each partition that no consumer has."""

    by_consumer: dict[ConsumerId, Waiting]
    # None: nobody has it, and not even the end of its log is known.
    without_consumer: dict[TopicPartition, Waiting | None]

    def total(self) -> Waiting:
        known = [one for one in self.without_consumer.values() if one is not None]
        return _summed([*self.by_consumer.values(), *known])


def group_waiting(state: State) -> GroupWaiting:
    by_consumer = {
        consumer: _of_consumer(state, consumer, record)
        for consumer, record in state.consumers.items()
    }
    without = {
        partition: _in_log(state, partition, None)
        for partition in state.write_speeds
        if partition not in state.holdings
    }
    return GroupWaiting(by_consumer, without)


def _of_consumer(state: State, consumer: ConsumerId, record: ConsumerRecord) -> Waiting:
    """Its report, and what the report leaves out. An old report counts where it says more."""
    reported = Waiting(record.behind_records, record.behind_bytes)
    is_new = state.now_ms - record.heard_ms <= state.settings.silence_ms
    found = []
    for partition in state.held_by.get(consumer, ()):
        if is_new and _is_reported(record, state.holdings[partition], partition):
            more = _written_since(state, record, partition)
        else:
            more = _in_log(state, partition, record)
        if more is not None:
            found.append(more)
    measured = _summed(found)
    if is_new:
        return _summed([reported, measured])
    return max(reported, measured, key=lambda one: one.records)


def waiting_by_partition(state: State) -> dict[TopicPartition, Waiting | None]:
    """What waits in each log; None where not even its end is known."""
    found: dict[TopicPartition, Waiting | None] = {}
    for partition in state.write_speeds:
        holding = state.holdings.get(partition)
        record = None if holding is None else state.consumers.get(holding.consumer)
        if (
            holding is not None
            and record is not None
            and state.now_ms - record.heard_ms <= state.settings.silence_ms
            and _is_reported(record, holding, partition)
        ):
            found[partition] = of_reported(state, record, partition)
        else:
            found[partition] = _in_log(state, partition, record)
    return found


def of_reported(state: State, record: ConsumerRecord, partition: TopicPartition) -> Waiting:
    """What waits of a partition that its consumer has reported."""
    records = record.unread_records[partition]
    log_bytes = record.behind_by_partition.get(partition)
    told = Waiting(records, 0.0 if records == 0 else log_bytes)
    since = _written_since(state, record, partition)
    return told if since is None else _summed([told, since])


def _written_since(
    state: State, record: ConsumerRecord, partition: TopicPartition
) -> Waiting | None:
    """What the monitor has seen written since the consumer looked; None: nothing more."""
    extent = None if state.speeds is None else state.speeds.logs.get(partition)
    next_offset = record.next_offsets.get(partition)
    if extent is None or next_offset is None:
        return None
    records = extent.end_offset - next_offset - record.unread_records[partition]
    if records <= 0:
        return None
    size = extent.log_bytes_per_record
    if size is None and record.behind_records:
        size = record.behind_bytes / record.behind_records
    return Waiting(records, None if size is None else records * size)


def _is_reported(record: ConsumerRecord, holding: Holding, partition: TopicPartition) -> bool:
    return record.incarnation == holding.incarnation and partition in record.unread_records


def _in_log(
    state: State, partition: TopicPartition, record: ConsumerRecord | None
) -> Waiting | None:
    """What lies between the ledger's next offset and the end of the log."""
    extent = None if state.speeds is None else state.speeds.logs.get(partition)
    if extent is None:
        return None
    told = None if record is None else record.next_offsets.get(partition)
    next_offset = state.ledger_offsets.get(partition) if told is None else told
    if record is None and next_offset is not None and next_offset > extent.end_offset:
        next_offset = None  # of a log that was made again, or has lost records
    return between(extent, next_offset)


def between(extent: LogExtent, next_offset: int | None) -> Waiting:
    """Records before the start of the log are gone: they wait no more."""
    start = max(extent.start_offset or 0, next_offset or 0)
    records = max(0, extent.end_offset - start)
    size = extent.log_bytes_per_record
    log_bytes = 0.0 if records == 0 else None if size is None else records * size
    return Waiting(records, log_bytes, is_at_most=next_offset is None and records > 0)


def _summed(several: list[Waiting]) -> Waiting:
    sizes = [one.log_bytes for one in several]
    known = [size for size in sizes if size is not None]
    return Waiting(
        sum(one.records for one in several),
        sum(known) if len(known) == len(sizes) else None,
        any(one.is_at_most for one in several),
    )
