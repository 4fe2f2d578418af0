"""What is due on every tick in every state but Synchronize: sending again and tidying up.

Commands are sent again until they are acknowledged or their consumer is given up (see `silence`).
"""

from collections.abc import Mapping
from dataclasses import replace

from penstock.controller.core.capacity import speeds_by_topic
from penstock.controller.core.decisions import Code
from penstock.controller.core.excluded_times import note_excluded
from penstock.controller.core.inputs import LogExtent, SpeedsMeasured, Tick
from penstock.controller.core.load import available, remembered_speeds
from penstock.controller.core.membership import (
    create_what_is_wanted,
    delete_again,
    remove,
)
from penstock.controller.core.objective_changes import follow, note_peaks, note_rises
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, by_name
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import Direction
from penstock.model import ConsumerId, TopicPartition
from penstock.model.sentences import counted
from penstock.packing.speed_memory import remember
from penstock.packing.trend import observe

# Commands sent again by one tick: at least these, so that a small group is done in one.
RESENT_PER_TICK_MIN = 25
# A large group sends this share of its partitions, so that no step gets long: all in two seconds.
RESENT_SHARE_PER_TICK = 1 / 20


def tidy(draft: StepDraft, tick: Tick) -> None:
    _end_pauses(draft, tick)
    note_excluded(draft, tick)
    follow(draft)
    send_again(draft)
    delete_again(draft)
    _try_parked_again(draft)
    create_what_is_wanted(draft)
    if draft.now_ms - max(draft.state.listed_ms, draft.state.asked_ms) >= (
        draft.state.settings.list_period_ms
    ):
        draft.ask_for_list()


def _end_pauses(draft: StepDraft, tick: Tick) -> None:
    left = tuple(
        pause
        for pause in draft.state.pauses
        if pause.until_unix_ms is None or tick.unix_ms < pause.until_unix_ms
    )
    if len(left) != len(draft.state.pauses):
        draft.change(pauses=left)
        draft.save()


def send_again(draft: StepDraft) -> None:
    """Commands that are not acknowledged."""
    left = max(RESENT_PER_TICK_MIN, int(len(draft.holdings) * RESENT_SHARE_PER_TICK))
    for partition in sorted(draft.in_flight, key=by_name):
        sent_ms = draft.holdings[partition].sent_ms
        if left and draft.now_ms - sent_ms >= draft.state.settings.command_resend_ms:
            left -= 1
            draft.resend(partition)
            draft.count("commands_resent")


def _try_parked_again(draft: StepDraft) -> None:
    for partition in sorted(draft.parked):
        if draft.now_ms >= draft.parked[partition].until_ms:
            draft.parked.drop(partition)
            draft.reopen(partition)


def measure(draft: StepDraft, given: SpeedsMeasured) -> None:
    """Take a measurement. The partitions it names are those that exist.

    One that names none at all says that the monitor is blind, not that every topic is gone.
    """
    before = draft.state.write_speeds
    if before and not given.bytes_per_s:
        draft.count("empty_measurement")
        return
    _try_topics_made_again(draft, given.topic_ids)
    speeds = remembered_speeds(
        draft.state.speeds,
        given.bytes_per_s,
        draft.now_ms - given.age_ms,
        draft.state.settings.vanish_after_measurements,
        given.topic_ids,
    )
    speeds = replace(speeds, logs=_known_logs(draft, speeds.bytes_per_s, given))
    after = speeds.bytes_per_s
    policy, trend = draft.state.settings.policy, draft.state.trend
    memory = remember(
        draft.state.speed_memory,
        after,
        speeds.measured_ms,
        policy.over_capacity_ms,
        policy.scale_down_period_ms,
    )
    if policy.look_ahead_ms:
        trend = observe(trend, memory.established, speeds.measured_ms)
    draft.change(
        speeds=speeds,
        speed_memory=memory,
        trend=trend,
        written_by_topic=speeds_by_topic(memory.established, memory.established),
    )
    note_rises(draft)
    note_peaks(draft)
    if before.keys() == after.keys() and draft.holdings.now.keys() <= after.keys():
        return
    appeared = len(after.keys() - before.keys())
    if appeared:
        draft.decide(Code.PARTITION_APPEARED, f"{counted(appeared, 'partition')} appeared")
    vanished = sorted(before.keys() - after.keys(), key=by_name)
    if vanished:
        draft.decide(Code.PARTITION_VANISHED, f"{counted(len(vanished), 'partition')} vanished")
        forget(draft, vanished)
    if before:
        # Consumers read these, and no measurement since the start of this controller names them.
        vanished += [p for p in draft.holdings.now if p not in after and p not in before]
    for partition in vanished:
        holding = draft.holdings.get(partition)
        if holding is not None and holding.status is not HoldingStatus.STOPPING:
            draft.stop(partition)


def _known_logs(
    draft: StepDraft, existing: Mapping[TopicPartition, float], given: SpeedsMeasured
) -> Mapping[TopicPartition, LogExtent]:
    """The new extents, with the last known one of a partition that has none in this measurement."""
    known = {} if draft.state.speeds is None else draft.state.speeds.logs
    missing = {p: known[p] for p in existing.keys() - given.logs.keys() if p in known}
    return {**missing, **given.logs} if missing else given.logs


def _try_topics_made_again(draft: StepDraft, topic_ids: Mapping[str, str]) -> None:
    """What was wrong with a partition of the old topic says nothing about the new one."""
    known = {} if draft.state.speeds is None else draft.state.speeds.topic_ids
    new = {topic for topic, name in topic_ids.items() if known.get(topic, name) != name}
    for topic in sorted(new):
        draft.decide(Code.PARTITION_APPEARED, f"the topic {topic} was made again")
    for partition in sorted(draft.parked):
        if partition.topic in new:
            draft.parked.drop(partition)
            draft.reopen(partition)
    for partition in [p for p in draft.ledger_offsets if p.topic in new] if new else ():
        draft.ledger_offsets.drop(partition)


def forget(draft: StepDraft, partitions: list[TopicPartition]) -> None:
    """Take vanished partitions out of the plan."""
    for partition in partitions:
        draft.close(partition)
        draft.parked.drop(partition)
        draft.ledger_offsets.drop(partition)
    plan = draft.state.plan
    if plan is not None:
        gone = set(partitions)
        target = {p: c for p, c in plan.target.items() if p not in gone}
        draft.change(plan=replace(plan, target=target, open=frozenset(draft.open) - gone))
    draft.save()


def workers(draft: StepDraft) -> set[ConsumerId]:
    """Consumers that have partitions, or get some by the plan."""
    plan = draft.state.plan
    holders = {consumer for consumer in draft.consumers if draft.held_by(consumer)}
    return holders if plan is None else holders | set(plan.target.values())


def idle(draft: StepDraft) -> list[ConsumerId]:
    """Consumers without partitions; those that are up first, then the lowest number."""
    busy = workers(draft)
    resting = [consumer for consumer in available(draft) if consumer not in busy]
    return sorted(resting, key=lambda consumer: (not draft.is_ready(consumer), consumer))


def idle_wanted(draft: StepDraft) -> int:
    """How many idle consumers to keep: spares, and what the minimum asks for."""
    settings = draft.state.settings
    busy = len([c for c in workers(draft) if c in draft.consumers])
    wanted = max(settings.spare_consumers, settings.consumers_min - busy)
    return max(0, min(wanted, settings.consumers_max - busy))


def remove_the_idle(draft: StepDraft) -> None:
    """Remove leaving consumers without partitions, and idle ones beyond the spares."""
    for consumer in sorted(draft.consumers):
        record = draft.consumers[consumer]
        if record.status is ConsumerStatus.LEAVING and not draft.held_by(consumer):
            remove(draft, consumer, "it has no partitions any more")
    roll_out = draft.state.roll_out
    needed = None if roll_out is None else roll_out.replacement
    if not draft.state.is_paused(Direction.DOWN):
        surplus = [c for c in idle(draft) if c != needed][idle_wanted(draft) :]
        for consumer in reversed(surplus):
            remove(draft, consumer, "it has no partitions, and there are enough spares")
