"""What a roll-out learns of its new consumers: that they carry, or what they cannot carry."""

from dataclasses import replace

from penstock.controller.core.state import ConsumerRecord
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ConsumerReport, StoppedPartition, StopReason
from penstock.model import ConsumerId

# The deployment may be at fault: its transformation, or the table that it makes.
OF_THE_DEPLOYMENT = frozenset(
    {
        StopReason.TRANSFORMATION_FAILED,
        StopReason.SCHEMA_CHANGED,
        StopReason.TABLE_NOT_SERVED,
    }
)


def shows_that_it_carries(record: ConsumerRecord, message: ConsumerReport) -> bool:
    """Whether it has carried a record since it started, or has partitions and nothing waits."""
    carried = message.cycle is not None and message.cycle.records > 0
    return record.has_carried or carried or (bool(message.owned) and message.behind_records == 0)


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
