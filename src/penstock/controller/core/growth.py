"""Growth must help: what the group carries in all is compared before and after it.

Consumers that share a limit (cores, a disk, a Spark server) carry no more when there are more of
them. So growth is on trial while the group is behind: when the new consumers have had their time
and all together carry no more than before, the group returns to its former size and stays there for
a while. What consumers measure on the way is contention, and is not learned as capacity.

A group that grew with its load compares nothing. Its new size counts like one at which growth
helped when it keeps up there, and nothing tells of contention.

A consumer that takes the place of a lost one is no growth: what counts as the size before is the
most that worked while what the group carried was measured.
"""

from dataclasses import replace

from penstock.controller.core.capacity import SAME_SHARE, capacities_of
from penstock.controller.core.carried_samples import (
    CarriedSample,
    average_bytes_per_s,
    highest_bytes_per_s,
    most_working,
    since,
)
from penstock.controller.core.decisions import Code
from penstock.controller.core.state import GrowthLimit, GrowthTrial
from penstock.controller.core.step_draft import StepDraft
from penstock.model.sentences import counted, speed_text
from penstock.packing.trigger import GroupLoad, is_over_capacity

# What the group carried is noted this often within `growth_settle`.
SAMPLES = 12
QUARTER = SAMPLES // 4
# What is judged by heartbeats takes as long as so many, also where `growth_settle` is shorter: with
# fewer there is no quarter to compare, or the next one comes when all before it is forgotten.
HEARTBEATS_MIN = QUARTER + 2
# For so many times `growth_settle` is it remembered what the group carried.
REMEMBERED = 2
# A group that carries less than this share of what it carried before stands still: something that
# it shares is away. Contention costs less.
STANDSTILL_SHARE = 0.1
# A group that carries less than is written by more than this share does not keep up.
SHORTFALL = 0.1


def _settle_ms(draft: StepDraft) -> int:
    """`growth_settle`, or longer where heartbeats are rare."""
    settings = draft.state.settings
    return max(settings.growth_settle_ms, HEARTBEATS_MIN * settings.heartbeat_period_ms)


def note_carried(draft: StepDraft) -> None:
    """A heartbeat came back: remember what all consumers had carried when it was sent.

    All that was reported before it has been read. By the time of reading it would seem, after the
    controller stood still, that the group carried nothing and then a multiple of what it can.
    """
    state = draft.state
    settle_ms, samples = _settle_ms(draft), state.carried_samples
    at_ms = state.heartbeats.heard_until_ms
    if at_ms is None or (samples and at_ms - samples[-1].at_ms < settle_ms / SAMPLES):
        return
    working = sum(1 for consumer in draft.consumers if draft.held_by(consumer))
    now = CarriedSample(at_ms, state.carried_bytes, working)
    draft.change(carried_samples=(*since(samples, at_ms - REMEMBERED * settle_ms), now))


def _known_until_ms(draft: StepDraft) -> int:
    """Until when it is known what was carried. Unlike now, that is never ahead of the reports."""
    heard_until_ms = draft.state.heartbeats.heard_until_ms
    return draft.now_ms if heard_until_ms is None else heard_until_ms


def _carried_bytes_per_s(draft: StepDraft, since_ms: int) -> float | None:
    """The most that all consumers together carried since then; None when that is not known.

    The highest quarter counts, because a starting group carries less than it can.
    """
    return highest_bytes_per_s(since(draft.state.carried_samples, since_ms), QUARTER)


def _written_bytes_per_s(draft: StepDraft) -> float:
    return sum(draft.state.speed_memory.established.values())


def begin(draft: StepDraft, consumers_before: int, consumers_after: int) -> None:
    """A plan makes the group larger than it was while its baseline was measured: try that.

    There is nothing to compare a first plan with, but it too has its time before more is tried.
    """
    since_ms = _known_until_ms(draft) - _settle_ms(draft)
    lately = since(draft.state.carried_samples, since_ms)
    consumers_before = max(consumers_before, most_working(lately))
    if consumers_after <= consumers_before:
        return
    carried = _carried_bytes_per_s(draft, since_ms) if consumers_before else None
    trial = GrowthTrial(consumers_before, consumers_after, carried, _written_bytes_per_s(draft))
    draft.change(growth_trial=trial)
    if not consumers_before:
        _confirm(draft, consumers_after)


def most_consumers(draft: StepDraft) -> int:
    """The most consumers that may have partitions now.

    Not more than those on trial, and not more than before a growth that did not help.
    """
    trial, limit = draft.state.growth_trial, draft.state.growth_limit
    bounds = [draft.state.settings.consumers_max]
    if trial is not None and not _has_changed(draft, trial.written_bytes_per_s):
        bounds.append(trial.consumers_after)
    if limit is not None and not _has_changed(draft, limit.written_bytes_per_s):
        bounds.append(limit.consumers_max)
    return max(1, min(bounds))


def judge(draft: StepDraft, group: GroupLoad, *, is_settled: bool) -> None:
    """End the trial and the limit when they are over; `is_settled` when no plan is under way."""
    limit, trial = draft.state.growth_limit, draft.state.growth_trial
    if limit is not None and (
        draft.now_ms >= limit.until_ms or _has_changed(draft, limit.written_bytes_per_s)
    ):
        draft.change(growth_limit=None)
    if trial is not None and _has_changed(draft, trial.written_bytes_per_s):
        draft.change(growth_trial=None)
    elif trial is not None and is_settled:
        _go_on(draft, group, trial)
    if is_settled and not group.is_behind:
        _confirm_grown_size(draft)


def _confirm_grown_size(draft: StepDraft) -> None:
    """The size of a group that grew with its load, and keeps up, is one at which figures count.

    Not where contention may have made it grow: most consumers measure clearly less than is known of
    them; or capacities were lowered at the last size that counts, and what is carried now, that
    size could carry by these capacities too.
    """
    state = draft.state
    since_ms = draft.now_ms - _settle_ms(draft)
    planned_ms = state.trigger.repacked_at_ms
    if (
        state.growth_trial is not None
        or state.growth_limit is not None
        or (planned_ms is not None and planned_ms > since_ms)
        or not _keeps_up(draft, since_ms)
    ):
        return
    carried = average_bytes_per_s(since(state.carried_samples, since_ms)) or 0.0
    working = [record for c, record in draft.consumers.now.items() if draft.held_by(c)]
    if len(working) <= state.capacity_size:
        return
    usual = capacities_of(state).usual_bytes_per_s
    was_lowered = usual < (1 - SAME_SHARE) * state.confirmed_bytes_per_s
    needs_all = carried > state.capacity_size * usual
    slowed = sum(1 for record in working if record.is_slowed)
    if 2 * slowed <= len(working) and (needs_all or not was_lowered):
        _confirm(draft, len(working))


def _confirm(draft: StepDraft, size: int) -> None:
    """Up to this size, what consumers measure counts."""
    usual = capacities_of(draft.state).usual_bytes_per_s
    draft.change(capacity_size=size, confirmed_bytes_per_s=usual)


def _go_on(draft: StepDraft, group: GroupLoad, trial: GrowthTrial) -> None:
    """Wait until the new consumers have had their time, then compare.

    A group that keeps up for a quarter of `growth_settle` needs no comparison. One that carries
    less than is written, and is not behind yet, has the time until it is.
    """
    since_ms, settings = trial.settled_since_ms, draft.state.settings
    if since_ms is None:
        draft.change(growth_trial=replace(trial, settled_since_ms=draft.now_ms))
        return
    settle_ms = float(_settle_ms(draft))
    passed_ms = _known_until_ms(draft) - since_ms
    keeps_up = not group.is_behind and _keeps_up(draft, since_ms)
    is_enough = keeps_up and not is_over_capacity(group)
    if is_enough:
        settle_ms /= 4
    elif not keeps_up and not group.is_behind:
        settle_ms = max(settle_ms, settings.behind_tolerated_ms / SHORTFALL)
    if passed_ms <= settle_ms:
        return
    if not is_enough and passed_ms > REMEMBERED * settle_ms:
        # Plans or an outage held the group up, and what it carried before is not known any more.
        draft.change(growth_trial=replace(trial, settled_since_ms=draft.now_ms))
    elif group.is_behind and _stands_still(draft, trial, since_ms):
        draft.change(growth_trial=replace(trial, settled_since_ms=draft.now_ms))
    else:
        draft.change(growth_trial=None)
        if group.is_behind:
            _compare(draft, trial, since_ms)


def _keeps_up(draft: StepDraft, since_ms: int) -> bool:
    """Whether about as much is carried as is written, on average and not only at times."""
    carried = average_bytes_per_s(since(draft.state.carried_samples, since_ms))
    return carried is not None and carried >= (1 - SHORTFALL) * _written_bytes_per_s(draft)


def _stands_still(draft: StepDraft, trial: GrowthTrial, since_ms: int) -> bool:
    carried = _carried_bytes_per_s(draft, since_ms) or 0.0
    return carried < STANDSTILL_SHARE * (trial.carried_bytes_per_s or 0.0)


def _has_changed(draft: StepDraft, former_bytes_per_s: float) -> bool:
    """Whether the load is so different that an old comparison says nothing about it."""
    change = abs(_written_bytes_per_s(draft) - former_bytes_per_s)
    return change > draft.state.settings.growth_load_change * former_bytes_per_s


def _compare(draft: StepDraft, trial: GrowthTrial, since_ms: int) -> None:
    settings = draft.state.settings
    carried = _carried_bytes_per_s(draft, since_ms) or 0.0
    former = trial.carried_bytes_per_s
    if former is None or carried >= former * (1 + settings.growth_gain_min):
        _confirm(draft, trial.consumers_after)
        return
    until_ms = draft.now_ms + settings.growth_retry_ms
    limit = GrowthLimit(trial.consumers_before, until_ms, trial.written_bytes_per_s)
    draft.change(growth_limit=limit)
    draft.save()
    before, after = trial.consumers_before, trial.consumers_after
    draft.decide(
        Code.GROWTH_DID_NOT_HELP,
        f"{counted(after, 'consumer')} carry {speed_text(carried)} in all, and {before} carried "
        f"{speed_text(former)}: back to {before}, and no more before "
        f"{settings.growth_retry_ms // 1_000} s have passed or the load has changed",
    )


def learned_capacity(
    draft: StepDraft, known_bytes_per_s: float | None, reported_bytes_per_s: float
) -> float | None:
    """What a consumer's report teaches about its capacity.

    A lower figure than the known one is contention while growth is on trial or limited, and in a
    group that is larger than the last size that was confirmed.
    """
    trial, size = draft.state.growth_trial, draft.state.capacity_size
    working = sum(1 for consumer in draft.consumers if draft.held_by(consumer))
    is_contended = (
        (trial is not None and trial.consumers_before > 0)
        or draft.state.growth_limit is not None
        or 0 < size < working
    )
    if is_contended:
        return known_bytes_per_s and max(known_bytes_per_s, reported_bytes_per_s)
    if not size:
        _confirm(draft, working)
    return reported_bytes_per_s
