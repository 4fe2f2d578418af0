"""What is written and not carried yet, and what it adds to the load that is planned for.

Load decides the size of the group. A backlog adds a bounded share to it, is counted once, where its
partition is held, and adds nothing while nothing is written: then those who are there carry it.
"""

from collections.abc import Collection, Mapping

from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ConsumerReport
from penstock.model import TopicPartition


def backlog_of(report: ConsumerReport) -> dict[TopicPartition, float]:
    """The bytes that each partition of a report is behind.

    A consumer reports bytes in all and offsets for each partition: the bytes are shared by the
    unread offsets, or evenly where none are known.
    """
    total = report.behind_log_bytes or 0
    unread = unread_records_of(report)
    if not any(unread.values()):
        unread = {row.topic_partition: 1 for row in report.owned}
    offsets = sum(unread.values())
    return {p: total * number / offsets for p, number in unread.items() if total and number}


def unread_records_of(report: ConsumerReport) -> dict[TopicPartition, int]:
    """The records that each partition of a report is behind, where the consumer knows the end."""
    return {
        row.topic_partition: abs(row.end_offset - row.next_offset)
        for row in report.owned
        if row.end_offset is not None and row.next_offset is not None
    }


def next_offsets_of(report: ConsumerReport) -> dict[TopicPartition, int]:
    """The ledger's next offset of each partition of a report."""
    return {
        row.topic_partition: row.next_offset for row in report.owned if row.next_offset is not None
    }


def behind_by_partition(draft: StepDraft) -> dict[TopicPartition, float]:
    """The backlog of each partition, by the newest report of the consumer that holds it."""
    return {
        partition: behind_bytes
        for consumer, record in draft.consumers.now.items()
        for held in (draft.held_by(consumer),)  # once for each consumer, not for each partition
        for partition, behind_bytes in record.behind_by_partition.items()
        if partition in held
    }


def catch_up_load(
    draft: StepDraft,
    behind: Mapping[TopicPartition, float],
    set_aside: Collection[TopicPartition],
) -> dict[TopicPartition, float]:
    """What each backlog adds to the load of its partition, in bytes a second.

    In all it is at most `catch_up_share` of what is written to the partitions that a plan can help.
    """
    settings = draft.state.settings
    if not settings.catch_up_ms:
        return {}
    speeds = draft.state.speed_memory.established
    wanted = {
        partition: bytes_behind * 1_000 / settings.catch_up_ms
        for partition, bytes_behind in behind.items()
        if partition in speeds and partition not in set_aside
    }
    written = sum(speed for partition, speed in speeds.items() if partition not in set_aside)
    total, most = sum(wanted.values()), written * settings.catch_up_share
    factor = min(1.0, most / total) if total else 0.0
    return {partition: extra * factor for partition, extra in wanted.items()}
