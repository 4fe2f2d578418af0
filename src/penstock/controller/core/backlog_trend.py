"""Whether what waits grows or shrinks, and how fast the group carries.

Both are judged over a time that is longer than two batches. A group works in batches: between two
commits nothing is carried and the backlog grows, and a commit takes much of it away at once. Only
the low points of the backlog, right after commits, say where it is going.

A note is made when a heartbeat came back, for the time when it was sent: all that was reported
until then has been read. After the controller stood still, its clock has gone on, and the reports
of that time are still to be read: by the clock the group would seem to have carried nothing. When
they are read, it is not known when in that gap it was carried, so nothing is judged across it.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from penstock.controller.core.state import BacklogSample, State
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.waiting import Waiting, group_waiting

# The backlog is noted this often within `growth_settle`, and so many notes are kept: ten minutes.
SAMPLES = 12
SAMPLES_KEPT = 10 * SAMPLES
# The shortest time that is judged, in notes.
SAMPLES_JUDGED_MIN = SAMPLES // 2
# Between two notes without a gap there is at most this much, in the usual time between them.
GAP_PERIODS = 2
# So many batches fit into the time that is judged.
BATCHES_JUDGED = 2
# So many times as long is looked at for the time left, which would jump with every batch otherwise.
TIME_LEFT_FACTOR = 4
# The long look counts while it shows at least this share of what the short one shows.
LONG_LOOK_SHARE_MIN = 0.5
# A group that carries this share of what is written keeps up: both figures are measured.
KEEPS_UP_SHARE = 0.9


class BacklogDirection(StrEnum):
    SMALL = "small"  # no more waits than two batches, or `controller.behind_tolerated`, leave
    UNKNOWN = "unknown"  # the group has not worked for long enough
    SHRINKING = "shrinking"
    STEADY = "steady"
    GROWING = "growing"


@dataclass(frozen=True, slots=True)
class BacklogTrend:
    direction: BacklogDirection
    written_bytes_per_s: float
    # None while it is unknown.
    carried_bytes_per_s: float | None = None
    # How much of the past was judged, and the longest batch in it.
    over_ms: int = 0
    batch_ms: int = 0
    # When the backlog shrinks and its bytes are known: how long until none is left.
    left_s: float | None = None


def note_backlog(draft: StepDraft) -> None:
    """A heartbeat came back: remember what waits and what was carried until it was sent.

    Also whether the group falls behind by that.
    """
    state = draft.state
    samples, at_ms = state.backlog_samples, state.heartbeats.heard_until_ms
    if at_ms is None or (samples and at_ms - samples[-1].at_ms < _period_ms(state)):
        return
    waiting = group_waiting(state).total()
    now = BacklogSample(at_ms, state.carried_bytes, waiting.records, waiting.log_bytes)
    draft.change(backlog_samples=(*samples[1 - SAMPLES_KEPT :], now))
    found = backlog_trend(draft.state, waiting)
    draft.change(is_falling_behind=found.direction is BacklogDirection.GROWING)


def backlog_trend(state: State, waiting: Waiting) -> BacklogTrend:
    """`waiting` is what waits now, in all."""
    written = sum(state.speed_memory.established.values())
    batch_ms = _longest_batch_ms(state)
    judged_ms = _judged_ms(state, batch_ms)
    samples = _samples_over(state, judged_ms, judged_ms)
    over_ms = samples[-1].at_ms - samples[0].at_ms if samples else 0
    carried = _carried_bytes_per_s(samples) if over_ms else None
    direction, is_known = (
        BacklogDirection.UNKNOWN,
        over_ms >= judged_ms and not _is_in_its_first(state),
    )
    low_bytes = _halves(samples)[1].log_bytes if over_ms else waiting.log_bytes
    if waiting.records == 0 or not _is_much(state, low_bytes, written, batch_ms):
        direction = BacklogDirection.SMALL
    elif carried is not None and (is_known or state.is_falling_behind):
        direction = _direction(samples, written, carried, was_growing=state.is_falling_behind)
    left_s = None
    if direction is BacklogDirection.SHRINKING and waiting.log_bytes is not None:
        left_s = _left_s(state, judged_ms, waiting.log_bytes)
    return BacklogTrend(direction, written, carried, over_ms, batch_ms, left_s)


def _left_s(state: State, judged_ms: float, log_bytes: float) -> float | None:
    """By what the low points of the backlog lost over a long time.

    A backlog that grew within that time has lost little in all: then only the last part counts.
    """
    long, short = (
        _lost_bytes_per_ms(_samples_over(state, judged_ms, over_ms))
        for over_ms in (TIME_LEFT_FACTOR * judged_ms, judged_ms)
    )
    lost = long if long >= LONG_LOOK_SHARE_MIN * short else short
    return log_bytes / lost / 1_000 if lost else None


def _lost_bytes_per_ms(samples: list[BacklogSample]) -> float:
    """0 where nothing was lost, and where the bytes are not known."""
    early, late = _halves(samples)
    if early.log_bytes is None or late.log_bytes is None:
        return 0.0
    return max(0.0, (early.log_bytes - late.log_bytes) / (late.at_ms - early.at_ms))


def _period_ms(state: State) -> float:
    """Longer where heartbeats are rare: a note is made with one."""
    settings = state.settings
    return max(settings.growth_settle_ms / SAMPLES, settings.heartbeat_period_ms)


def _judged_ms(state: State, batch_ms: int) -> float:
    period_ms = _period_ms(state)
    most = (SAMPLES_KEPT - 2) * period_ms
    return min(most, max(SAMPLES_JUDGED_MIN * period_ms, BATCHES_JUDGED * batch_ms))


def _samples_over(state: State, judged_ms: float, over_ms: float) -> list[BacklogSample]:
    """The latest ones, and one more than needed, so that what they span is never too short.

    None is from before a gap: when it was carried in between, is not known. Until enough is known
    after a gap, what was known before it counts.
    """
    runs = _without_gaps(state)
    long_enough = [run for run in runs if run[-1].at_ms - run[0].at_ms >= judged_ms]
    chosen = (long_enough or runs)[-1:]
    samples = chosen[0] if chosen else []
    span_ms = over_ms + _period_ms(state)
    old_enough = sum(1 for one in samples if one.at_ms <= samples[-1].at_ms - span_ms)
    return samples[max(0, old_enough - 1) :]


def _without_gaps(state: State) -> list[list[BacklogSample]]:
    runs: list[list[BacklogSample]] = []
    for one in state.backlog_samples:
        if not runs or one.at_ms - runs[-1][-1].at_ms > GAP_PERIODS * _period_ms(state):
            runs.append([])
        runs[-1].append(one)
    return runs


def _longest_batch_ms(state: State) -> int:
    """The longest of the last batches and of those that run."""
    return max(
        (max(one.last_batch_ms, one.running_batch_ms) for one in state.consumers.values()),
        default=0,
    )


def _is_in_its_first(state: State) -> bool:
    """Whether consumers work and none has ended a batch: what they carry is unknown."""
    working = [one for one in state.consumers.values() if one.running_batch_ms]
    longest_ms = max((one.running_batch_ms for one in working), default=0)
    is_too_long = BATCHES_JUDGED * longest_ms > SAMPLES_KEPT * _period_ms(state)
    return bool(working) and not is_too_long and not any(one.has_carried for one in working)


def _carried_bytes_per_s(samples: list[BacklogSample]) -> float:
    """From commit to commit, where there are two: a batch that runs is not counted as a pause."""
    first, last = samples[0], samples[-1]
    commits = [
        later for former, later in pairwise(samples) if later.carried_bytes > former.carried_bytes
    ]
    if len(commits) > 1:
        first, last = commits[0], commits[-1]
    return (last.carried_bytes - first.carried_bytes) * 1_000 / (last.at_ms - first.at_ms)


def _halves(samples: list[BacklogSample]) -> tuple[BacklogSample, BacklogSample]:
    """The low points of the earlier and of the later half."""
    middle_ms = (samples[0].at_ms + samples[-1].at_ms) / 2
    early = [one for one in samples if one.at_ms <= middle_ms]
    late = [one for one in samples if one.at_ms > middle_ms]
    return min(early, key=lambda one: one.records), min(late, key=lambda one: one.records)


def _is_much(state: State, low_bytes: float | None, written: float, batch_ms: int) -> bool:
    """While one batch runs, the next one is written: that much always waits."""
    tolerated_ms = max(state.settings.behind_tolerated_ms, BATCHES_JUDGED * batch_ms)
    return low_bytes is None or low_bytes > written * tolerated_ms / 1_000


def _direction(
    samples: list[BacklogSample], written: float, carried: float, *, was_growing: bool
) -> BacklogDirection:
    early, late = _halves(samples)
    if late.records > early.records and carried < KEEPS_UP_SHARE * written:
        return BacklogDirection.GROWING
    if late.records < early.records and carried > written:
        return BacklogDirection.SHRINKING
    # Between the two limits it stays what it was, so that a status does not go back and forth.
    return (
        BacklogDirection.GROWING if was_growing and carried < written else BacklogDirection.STEADY
    )
