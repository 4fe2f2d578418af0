"""Growth must help: what the group carries in all is compared before and after it.

Consumers that share a limit (cores, a disk, a Spark server) carry no more when there are more of
them. So growth is on trial while the group is behind: when the new consumers have had their time
and all together carry no more than before, the group returns to its former size and stays there for
a while. What consumers measure on the way is contention, and is not learned as capacity.
"""

from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.state import GrowthLimit, GrowthTrial
from penstock.controller.core.step_draft import StepDraft
from penstock.model.sentences import counted, speed_text
from penstock.packing.trigger import GroupLoad, is_over_capacity

# What the group carried is noted this often within `growth_settle`.
SAMPLES = 12
QUARTER = SAMPLES // 4
# For so many times `growth_settle` is it remembered what the group carried.
REMEMBERED = 2
# A group that carries less than this share of what it carried before stands still: something that
# it shares is away. Contention costs less.
STANDSTILL_SHARE = 0.1
# A group that carries less than is written by more than this share does not keep up.
SHORTFALL = 0.1


def note_carried(draft: StepDraft) -> None:
    """Remember what all consumers have carried so far."""
    settle_ms = draft.state.settings.growth_settle_ms
    samples = draft.state.carried_samples
    if samples and draft.now_ms - samples[-1][0] < settle_ms / SAMPLES:
        return
    kept = tuple(one for one in samples if draft.now_ms - one[0] <= REMEMBERED * settle_ms)
    draft.change(carried_samples=(*kept, (draft.now_ms, draft.state.carried_bytes)))


def _carried_bytes_per_s(draft: StepDraft, since_ms: int) -> float | None:
    """The most that all consumers together carried since then; None when that is not known.

    The highest quarter counts, because a starting group carries less than it can.
    """
    samples = [one for one in draft.state.carried_samples if one[0] >= since_ms]
    speeds = [
        (later_bytes - bytes_) * 1_000 / (later_ms - ms)
        for (ms, bytes_), (later_ms, later_bytes) in zip(samples, samples[QUARTER:], strict=False)
    ]
    return max(speeds, default=None)


def _written_bytes_per_s(draft: StepDraft) -> float:
    return sum(draft.state.speed_memory.established.values())


def begin(draft: StepDraft, consumers_before: int, consumers_after: int) -> None:
    """A plan makes the group larger: put that on trial.

    There is nothing to compare a first plan with, but it too has its time before more is tried.
    """
    if consumers_after <= consumers_before:
        return
    since_ms = draft.now_ms - draft.state.settings.growth_settle_ms
    carried = _carried_bytes_per_s(draft, since_ms) if consumers_before else None
    trial = GrowthTrial(consumers_before, consumers_after, carried, _written_bytes_per_s(draft))
    draft.change(growth_trial=trial)
    if not consumers_before:
        draft.change(capacity_size=consumers_after)


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


def _go_on(draft: StepDraft, group: GroupLoad, trial: GrowthTrial) -> None:
    """Wait until the new consumers have had their time, then compare.

    A group that keeps up for a quarter of `growth_settle` needs no comparison. One that carries
    less than is written, and is not behind yet, has the time until it is.
    """
    since_ms, settings = trial.settled_since_ms, draft.state.settings
    if since_ms is None:
        draft.change(growth_trial=replace(trial, settled_since_ms=draft.now_ms))
        return
    settle_ms = float(settings.growth_settle_ms)
    passed_ms = draft.now_ms - since_ms
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
    samples = [one for one in draft.state.carried_samples if one[0] >= since_ms]
    if len(samples) < 2:
        return False
    (first_ms, first_bytes), (last_ms, last_bytes) = samples[0], samples[-1]
    carried = (last_bytes - first_bytes) * 1_000 / (last_ms - first_ms)
    return carried >= (1 - SHORTFALL) * _written_bytes_per_s(draft)


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
        draft.change(capacity_size=trial.consumers_after)
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
    group that is larger than the last size at which growth helped.
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
    draft.change(capacity_size=size or working)
    return reported_bytes_per_s
