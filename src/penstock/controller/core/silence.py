"""Who is given up: the silent, and those that do not come up, stay up or acknowledge.

Everything is judged in heartbeat time, when a heartbeat of the controller came back (see
`heartbeats`). A consumer that reports what it waits for or works on, and one that the deployment
still starts, is waited for up to `patience`; a start that it explains is waited for beside all
plans. Many in trouble together is a fault of what they share: they are waited for together, and
given up a few at a time.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.membership import avoid_number, fence, hold_creations_back
from penstock.controller.core.state import (
    ConsumerRecord,
    ConsumerStatus,
    HoldingStatus,
    SharedSilence,
    by_name,
)
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId, TopicPartition
from penstock.model.sentences import counted, duration_text, shortened_list

UP = frozenset({ConsumerStatus.READY, ConsumerStatus.LEAVING})
# What is quiet for this share of `silence` counts when it is asked whether many are silent.
# No setting: it follows `silence`, and only tells one fault from a shared one.
QUIET_SHARE = 0.5


def give_up_the_silent(draft: StepDraft) -> None:
    """Give up consumers that are silent, or late without an explanation."""
    _set_explained_starts_aside(draft)
    not_staying = _not_staying(draft)
    late = {
        **_late_acknowledgements(draft),
        **_late_starts(draft),
        **_silent(draft),
        **not_staying,
    }
    creating = {
        consumer for consumer in late if draft.consumers[consumer].status is ConsumerStatus.CREATING
    }
    for consumer in now_given_up(draft, late, _quiet(draft)):
        fence(draft, consumer, late[consumer])
        if consumer in creating or consumer in not_staying:
            avoid_number(draft, consumer)
            hold_creations_back(draft)


def now_given_up(
    draft: StepDraft, late: Mapping[ConsumerId, str], quiet: Collection[ConsumerId]
) -> list[ConsumerId]:
    """All that are late when they are few; a few at a time when many are late or quiet.

    Never the whole group at once, unless it is a group of one.
    """
    settings, heartbeat_time_ms = draft.state.settings, draft.heartbeat_time_ms
    troubled = tuple(sorted({*late, *quiet}))
    few = max(1, int(settings.silent_share_max * len(draft.consumers)))
    if len(troubled) <= few:
        draft.change(shared_silence=None)
        return sorted(late)
    shared = draft.state.shared_silence
    if shared is None:
        if not late:
            return []
        draft.decide(
            Code.HELD_BY_SILENCE,
            f"{len(troubled)} of {counted(len(draft.consumers), 'consumer')} are silent or late "
            f"together ({shortened_list([str(c) for c in troubled])}): what they share is at "
            "fault, and they are waited for",
        )
        draft.change(shared_silence=SharedSilence(troubled, heartbeat_time_ms, heartbeat_time_ms))
        return []
    draft.change(shared_silence=replace(shared, consumers=troubled))
    if (
        heartbeat_time_ms - shared.gave_up_heartbeat_time_ms < settings.give_up_period_ms
        or not late
    ):
        return []
    draft.change(
        shared_silence=replace(
            shared, consumers=troubled, gave_up_heartbeat_time_ms=heartbeat_time_ms
        )
    )
    return sorted(late)[: min(settings.give_up_at_once, len(draft.consumers) - 1)]


def _silent(draft: StepDraft) -> dict[ConsumerId, str]:
    silence_ms = draft.state.settings.silence_ms
    why = f"sent no message for {silence_ms / 1_000:g} s while the controller could read"
    return {
        consumer: why
        for consumer, record in draft.consumers.now.items()
        if record.status in UP and has_been_quiet(draft, record, silence_ms)
    }


def _not_staying(draft: StepDraft) -> dict[ConsumerId, str]:
    """What ends it again and again, soon after its start, may be bound to its place: a node."""
    most = draft.state.settings.restarts_max
    return {
        consumer: f"started again {record.restarts_in_vain} times without carrying anything"
        for consumer, record in draft.consumers.now.items()
        if record.restarts_in_vain > most
    }


def _quiet(draft: StepDraft) -> list[ConsumerId]:
    quiet_ms = draft.state.settings.silence_ms * QUIET_SHARE
    return [
        consumer
        for consumer, record in draft.consumers.now.items()
        if record.status in UP and has_been_quiet(draft, record, quiet_ms)
    ]


def has_been_quiet(draft: StepDraft, record: ConsumerRecord, for_ms: float) -> bool:
    return draft.heartbeat_time_ms - record.heard_heartbeat_time_ms >= for_ms


def creation_bound_ms(draft: StepDraft) -> int:
    """How long a new consumer may take: several times the slowest of the latest starts."""
    settings = draft.state.settings
    slowest_ms = max(draft.state.starts_took_ms, default=0)
    return max(settings.creation_timeout_ms, round(settings.creation_slack * slowest_ms))


def _late_starts(draft: StepDraft) -> dict[ConsumerId, str]:
    """Judged by a list of deployments that is newer than the bound.

    The bound counts from the end of what the deployment calls starting: only then can the process
    begin to come up. Whatever the deployment says, `patience` is the end.
    """
    bound_ms = creation_bound_ms(draft)
    longest_ms = max(bound_ms, draft.state.settings.patience_ms)
    late = {}
    for consumer, record in draft.consumers.now.items():
        if record.status is not ConsumerStatus.CREATING:
            continue
        since_ms = max(record.since_heartbeat_time_ms, record.starting_heartbeat_time_ms)
        listed_ms = record.listed_heartbeat_time_ms
        if draft.heartbeat_time_ms - record.since_heartbeat_time_ms >= longest_ms:
            late[consumer] = f"did not come up within {_text(longest_ms)}"
        elif draft.heartbeat_time_ms - since_ms < bound_ms:
            continue
        elif listed_ms is None or listed_ms - since_ms < bound_ms:
            draft.ask_for_list()
        else:
            late[consumer] = f"did not come up within {_text(bound_ms)}"
    return late


def _late_acknowledgements(draft: StepDraft) -> dict[ConsumerId, str]:
    """A stop or start that is not acknowledged, while its consumer says nothing that explains it.

    Whatever it says, `patience` after a stop is the end.
    """
    settings, late = draft.state.settings, dict[ConsumerId, str]()
    for partition in sorted(draft.in_flight, key=by_name):
        holding = draft.holdings[partition]
        if holding.consumer in late:
            continue
        asked_ms = holding.since_heartbeat_time_ms
        explained_ms = draft.consumers[holding.consumer].explained_heartbeat_time_ms
        waited_ms = draft.heartbeat_time_ms - max(asked_ms, explained_ms)
        longest_ms = max(settings.acknowledge_ms, settings.patience_ms)
        is_over = draft.heartbeat_time_ms - asked_ms >= longest_ms
        if is_over or waited_ms >= settings.acknowledge_ms:
            verb = "start" if holding.status is HoldingStatus.STARTING else "stop"
            bound_ms = longest_ms if is_over else settings.acknowledge_ms
            late[holding.consumer] = f"did not {verb} {partition} within {_text(bound_ms)}"
    return late


def _set_explained_starts_aside(draft: StepDraft) -> None:
    """A start that its consumer explains says nothing against the consumer.

    The partition's table may be the only one that cannot be read. When others have carried for
    `acknowledge` meanwhile, no plan waits for it any more; a lake that is away for all holds plans
    up, because no move would help. After `patience` it is stopped, and started anew when that is
    acknowledged: perhaps another consumer can read the table.
    """
    settings, now_ms = draft.state.settings, draft.heartbeat_time_ms
    longest_ms, plan = max(settings.acknowledge_ms, settings.patience_ms), draft.state.plan
    overdue: dict[ConsumerId, list[TopicPartition]] = {}
    stopped: dict[ConsumerId, list[TopicPartition]] = {}
    for partition in sorted(draft.in_flight, key=by_name):
        holding = draft.holdings[partition]
        explained_ms = draft.consumers[holding.consumer].explained_heartbeat_time_ms
        is_explained = now_ms - explained_ms < settings.acknowledge_ms
        if holding.status is not HoldingStatus.STARTING or not is_explained:
            continue
        asked_ms, seen = holding.since_heartbeat_time_ms, draft.state.lake_seen
        others_ms = seen.until_heartbeat_time_ms - max(asked_ms, seen.since_heartbeat_time_ms)
        if now_ms - asked_ms >= longest_ms:
            draft.stop(partition)
            draft.reopen(partition)
            stopped.setdefault(holding.consumer, []).append(partition)
        elif others_ms >= settings.acknowledge_ms and not holding.is_overdue:
            draft.hold(partition, replace(holding, is_overdue=True))
            if plan is not None and plan.target.get(partition) == holding.consumer:
                draft.close(partition)  # else the plan moves it, once its next consumer is up
            overdue.setdefault(holding.consumer, []).append(partition)
    rest = f"not started within {_text(settings.acknowledge_ms)}; nothing else waits for that"
    _tell_of_starts(draft, Code.PARTITION_FAILED, overdue, rest)
    rest = f"not started within {_text(longest_ms)}: stopped, and then started anew"
    _tell_of_starts(draft, Code.PARTITION_GIVEN_UP, stopped, rest)


def _text(ms: float) -> str:
    return duration_text(ms / 1_000)


def _tell_of_starts(
    draft: StepDraft, code: Code, found: Mapping[ConsumerId, list[TopicPartition]], rest: str
) -> None:
    """One line for each consumer: a lake that is away concerns many partitions."""
    for consumer, partitions in found.items():
        names = shortened_list([str(partition) for partition in partitions])
        why = draft.consumers[consumer].occupation or "does not say why any more"
        draft.decide(code, f"{names} {rest}: consumer {consumer} {why}")
