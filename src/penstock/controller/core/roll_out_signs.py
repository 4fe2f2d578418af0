"""What a roll-out learns of its new consumers: that they carry, or what they cannot carry."""

from dataclasses import replace

from penstock.controller.core.state import ConsumerRecord
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ConsumerReport, ReportedPartition, StoppedPartition, StopReason
from penstock.model import ConsumerId

# The deployment may be at fault: its transformation, or the table that it makes.
OF_THE_DEPLOYMENT = frozenset(
    {
        StopReason.TRANSFORMATION_FAILED,
        StopReason.SCHEMA_CHANGED,
        StopReason.TABLE_NOT_SERVED,
    }
)


def proven_topics(record: ConsumerRecord, message: ConsumerReport) -> frozenset[str]:
    """The topics of which it has carried a record since it started, or of which nothing waits.

    By topic, because each has a transformation and a table of its own. A partition whose end the
    consumer has not read yet says nothing.
    """
    moving = {row.topic for row in message.owned if row.records_per_s}
    waiting = {row.topic for row in message.owned if not _is_at_its_end(row)}
    at_their_ends = {row.topic for row in message.owned} - waiting
    return record.proven_topics | moving | at_their_ends


def _is_at_its_end(row: ReportedPartition) -> bool:
    return (
        row.next_offset is not None
        and row.end_offset is not None
        and row.next_offset >= row.end_offset
    )


def note_failure(draft: StepDraft, consumer: ConsumerId, row: StoppedPartition) -> None:
    """A new consumer had to stop a partition that the old ones could carry."""
    roll_out, record = draft.state.roll_out, draft.consumers[consumer]
    if (
        roll_out is None
        or roll_out.undoes is not None
        or not roll_out.is_tried
        or record.deployment_version != roll_out.version
        or row.reason not in OF_THE_DEPLOYMENT
        or row.topic_partition in roll_out.failed_before
    ):
        return
    detail = f": {row.detail}" if row.detail else ""
    fault = f"{row.topic_partition} stopped at consumer {consumer} ({row.reason.value}){detail}"
    draft.change(roll_out=replace(roll_out, fault=roll_out.fault or fault))
    draft.save()
