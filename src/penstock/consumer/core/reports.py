"""When to report to the controller, and what a report holds; and when to remove orphans."""

from penstock.consumer.core.effects import (
    RemoveOrphans,
    SaveMailboxPositions,
    SendToController,
    SetHealth,
    WriteGroupOffsets,
)
from penstock.consumer.core.event_builder import Measurements
from penstock.consumer.core.inputs import OrphansNotRemoved, Tick
from penstock.consumer.core.occupation import waits_for, works_on
from penstock.consumer.core.pace import CapacityEstimate
from penstock.consumer.core.partition_progress import WorkDone, behind, reported
from penstock.consumer.core.step_draft import StepDraft
from penstock.consumer.core.topic_capacity import owned_topics
from penstock.messages import TopicCapacity
from penstock.messages.report import TOPIC_CAPACITIES_MAX
from penstock.model.changed import changed


def report(draft: StepDraft, given: Tick) -> None:
    """Send a report if due. While Kafka accepts none, skip it: it would be stale."""
    if draft.now_ms < draft.report_due_ms:
        return
    draft.report_due_ms = draft.now_ms + draft.settings.report_period_ms
    missing = "the broker takes no reports" if given.is_delivery_stuck else None
    draft.do(SetHealth("kafka", missing))
    if given.is_delivery_stuck:
        return
    own = draft.own
    draft.own = changed(own, reports=own.reports + 1)
    measured = _measure(draft)
    # A partition whose ledger is not read yet is not being read, and is not reported as such.
    held = [p for p, one in draft.owned.items() if one.next_offset is not None]
    messages = draft.events.report(
        draft.own.reports, own.phase, own.previous_shutdown, held, measured
    )
    for message in messages:
        draft.do(SendToController(message))
    draft.do(WriteGroupOffsets({}))
    draft.do(SaveMailboxPositions())


def _measure(draft: StepDraft) -> Measurements:
    """What was measured since the last report; the counts begin anew."""
    seconds = (draft.now_ms - draft.reported_ms) / 1000
    draft.reported_ms = draft.now_ms
    partitions = {}
    for partition, row in draft.progress.items():
        owned = draft.owned[partition]
        partitions[partition] = reported(partition, owned.epoch, row, seconds, owned.next_offset)
        if row.offsets_read:
            draft.progress[partition] = changed(row, offsets_read=0, log_bytes_read=0.0)
    next_offsets = {
        p: one.next_offset for p, one in draft.owned.items() if one.next_offset is not None
    }
    unread = behind(draft.progress, next_offsets, draft.batches.decoded_bytes_per_offset)
    work, draft.work = draft.work, WorkDone()
    topics, batches = owned_topics(draft.owned), draft.batches
    is_of_these = topics == batches.capacity_topics
    capacity = batches.capacity if is_of_these else CapacityEstimate()
    # Batches that are not full have the topics as they are written: their figure never waits.
    is_measuring = batches.topic_capacities.is_measuring(topics, draft.now_ms)
    return Measurements(
        partitions=partitions,
        capacity_log_bytes_per_s=None if is_measuring else capacity.log_bytes_per_s,
        at_least_log_bytes_per_s=_within_limit(draft, capacity.at_least_log_bytes_per_s),
        topic_capacities=_topic_capacities(draft),
        behind_records=unread[0] if unread else None,
        behind_log_bytes=unread[1] if unread else None,
        deployment_version=draft.settings.deployment_version,
        cycle=work.measurement(),
        failed=tuple(draft.failed[one] for one in sorted(draft.failed)),
        waits_for=waits_for(draft),
        works_on=works_on(draft),
    )


def _topic_capacities(draft: StepDraft) -> tuple[TopicCapacity, ...]:
    """Of the topics that it owns and has carried alone."""
    found = []
    capacities = draft.batches.topic_capacities
    for topic in sorted(owned_topics(draft.owned) & capacities.by_topic.keys()):
        least = capacities.by_topic[topic].at_least_log_bytes_per_s
        shown = capacities.shown(topic)
        if shown is not None or least is not None:
            found.append(
                TopicCapacity(
                    topic=topic,
                    capacity_log_bytes_per_s=_within_limit(draft, shown),
                    at_least_log_bytes_per_s=_within_limit(draft, least),
                )
            )
    return tuple(found[:TOPIC_CAPACITIES_MAX])


def _within_limit(draft: StepDraft, bytes_per_s: float | None) -> float | None:
    """Where the settings limit what is read, it carries no more in the long run."""
    limit = draft.settings.capacity_bytes_per_s
    return min(bytes_per_s, limit) if bytes_per_s is not None and limit else bytes_per_s


# Files of an incarnation that died can be removed once the ledger has moved past them, which takes
# until the partition is read again: so at once, then after ten seconds, a minute and ten minutes.
# No setting: the dates change only when disk space comes back, and later ones find the rest.
_ORPHAN_REMOVALS_MS = (0, 10_000, 60_000, 600_000)


def orphan_removals(now_ms: int) -> tuple[int, ...]:
    return tuple(now_ms + after_ms for after_ms in _ORPHAN_REMOVALS_MS)


def remove_orphans(draft: StepDraft) -> None:
    """Remove what an earlier incarnation left behind, if that is due."""
    if draft.orphan_removals_ms and draft.now_ms >= draft.orphan_removals_ms[0]:
        draft.orphan_removals_ms = draft.orphan_removals_ms[1:]
        draft.do(RemoveOrphans())


def orphans_not_removed(draft: StepDraft, given: OrphansNotRemoved) -> None:
    """They are in nobody's way. After the last removal, it is tried again until one succeeds."""
    if not draft.orphan_removals_ms:
        draft.orphan_removals_ms = (draft.now_ms + _ORPHAN_REMOVALS_MS[-1],)
    draft.log_failure("orphans_kept", given.error)
