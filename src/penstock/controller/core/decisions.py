"""Every decision explains itself: a code for programs, a sentence with figures for people, a cost.

The history is bounded: the newest decisions push out the oldest. A fault that comes again is not
told again: it moves to the end with a count, so that it pushes out nothing. The newest requests of
operators stay: who asked for what must not be pushed out by what others make the group tell.
"""

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum

# Enough for an hour of a restless group; the state file stays small.
HISTORY_MAX = 200
REQUESTS_KEPT = 50


class Code(StrEnum):
    """What was decided, or why. The reasons for a plan are those of `packing.trigger.Reason`."""

    FIRST_START = "first_start"
    SYNCHRONISED = "synchronised"
    OUT_OF_STEP = "out_of_step"
    SUPERSEDED = "superseded"

    UNREAD_PARTITION = "unread_partition"
    CONSUMER_LOST = "consumer_lost"
    OVER_MAXIMUM = "over_maximum"
    OVER_CAPACITY = "over_capacity"
    FEWER_WOULD_DO = "fewer_would_do"
    ROLL_OUT = "roll_out"
    ROLLED_BACK = "rolled_back"
    PLAN_OVERTAKEN = "plan_overtaken"
    PLAN_DROPPED = "plan_dropped"
    READ_MEANWHILE = "read_meanwhile"

    PLAN_MADE = "plan_made"
    PLAN_DONE = "plan_done"
    NOTHING_TO_GAIN = "nothing_to_gain"
    PACKING_FAILED = "packing_failed"
    OVERSIZE_PARTITION = "oversize_partition"
    MAXIMUM_BINDS = "maximum_binds"
    GROWTH_DID_NOT_HELP = "growth_did_not_help"

    CONSUMER_CREATED = "consumer_created"
    CONSUMER_REMOVED = "consumer_removed"
    CONSUMER_FENCED = "consumer_fenced"
    CONSUMER_ENDED = "consumer_ended"
    HELD_BY_SILENCE = "held_by_silence"
    CONSUMER_RESTARTED = "consumer_restarted"
    CONSUMER_ADOPTED = "consumer_adopted"
    CREATION_FAILED = "creation_failed"
    LISTING_FAILED = "listing_failed"
    CONSUMER_INCIDENT = "consumer_incident"
    PARTITION_APPEARED = "partition_appeared"
    PARTITION_VANISHED = "partition_vanished"
    PARTITION_FAILED = "partition_failed"
    PARTITION_GIVEN_UP = "partition_given_up"
    STRAY_READER = "stray_reader"
    MESSAGE_REFUSED = "message_refused"
    REQUEST_ANSWERED = "request_answered"
    SETTING_DROPPED = "setting_dropped"
    OBJECTIVE_FOLLOWED = "objective_followed"


@dataclass(frozen=True, slots=True)
class Decision:
    at_ms: int
    code: Code
    explanation: str
    plan_number: int
    # What a plan moves: partitions that pause for a moment, and the speed they are written at.
    moves: int = 0
    moved_bytes_per_s: float = 0.0
    # How often it came, and when for the first time; `at_ms` is the last.
    times: int = 1
    first_ms: int | None = None


# What may come again and again while nothing else changes: the same words are told once.
REPEATING = frozenset(
    {
        Code.PACKING_FAILED,
        Code.CONSUMER_FENCED,
        Code.CONSUMER_ENDED,
        Code.CONSUMER_RESTARTED,
        Code.CREATION_FAILED,
        Code.LISTING_FAILED,
        Code.CONSUMER_INCIDENT,
        Code.PARTITION_FAILED,
        Code.PARTITION_GIVEN_UP,
        Code.STRAY_READER,
    }
)
# The same with figures, which differ each time.
REPEATING_WITH_FIGURES = frozenset(
    {
        Code.NOTHING_TO_GAIN,
        Code.OVERSIZE_PARTITION,
        Code.MAXIMUM_BINDS,
        Code.GROWTH_DID_NOT_HELP,
    }
)
# A plan that starts the same partitions later than this is another one, not the same again.
PLAN_AGAIN_WITHIN_MS = 600_000
_FIGURE = re.compile(r"(?<![-\w.])\d[\d,.]*")
_PARTITION_READ = re.compile(r"\breads? \S+")


def remembered(history: tuple[Decision, ...], new: list[Decision]) -> tuple[Decision, ...]:
    """The newest decisions, at most `HISTORY_MAX` of them, each repeated fault once."""
    kept = list(history)
    for decision in new:
        place = _place_of_same(kept, decision)
        former = decision if place is None else kept.pop(place)
        first_ms = former.at_ms if former.first_ms is None else former.first_ms
        kept.append(
            decision
            if place is None
            else replace(decision, times=former.times + 1, first_ms=first_ms)
        )
    return _bounded(kept)


def _bounded(kept: list[Decision]) -> tuple[Decision, ...]:
    """Without the oldest, the newest requests excepted."""
    excess = len(kept) - HISTORY_MAX
    if excess <= 0:
        return tuple(kept)
    requests = [i for i, one in enumerate(kept) if one.code is Code.REQUEST_ANSWERED]
    stays = set(requests[-REQUESTS_KEPT:])
    goes = set([i for i in range(len(kept)) if i not in stays][:excess])
    return tuple(one for i, one in enumerate(kept) if i not in goes)


def _place_of_same(history: list[Decision], decision: Decision) -> int | None:
    text, since_ms = _same_text(decision), -math.inf
    if text is None:
        return None
    if decision.code in (Code.PLAN_MADE, Code.PLAN_DONE):
        since_ms = decision.at_ms - PLAN_AGAIN_WITHIN_MS
    if decision.code is Code.PLAN_DONE:
        made = [one for one in history if one.code is Code.PLAN_MADE]
        if not made or made[-1].times == 1:
            return None  # its plan is not told again, so its end is not either
    return next(
        (
            i
            for i, one in enumerate(history)
            if one.code is decision.code and one.at_ms >= since_ms and _same_text(one) == text
        ),
        None,
    )


def _same_text(decision: Decision) -> str | None:
    """What must be the same for a decision to be a repetition; None: it never is one."""
    code, text = decision.code, decision.explanation
    if code is Code.PARTITION_FAILED:
        return text.partition(": ")[0]  # what follows are its consumer's words, which may differ
    if code is Code.MESSAGE_REFUSED:
        # Names and numbers are those of its writer: they must not push out what else is told.
        return _FIGURE.sub("", text.partition(": ")[0])
    if code is Code.STRAY_READER:
        return _PARTITION_READ.sub("", text)  # which one is the word of who says that he reads it
    if code in REPEATING:
        return text
    is_start_alone = code is Code.PLAN_MADE and decision.moves == 0
    if is_start_alone or code in REPEATING_WITH_FIGURES or code is Code.PLAN_DONE:
        return _FIGURE.sub("", text)
    return None


def told_since(before: tuple[Decision, ...], after: tuple[Decision, ...]) -> list[Decision]:
    """The decisions of `after` that are not in `before`, oldest first."""
    if before is after:
        return []
    known = set(before)
    return [decision for decision in after if decision not in known]


def is_worth_a_line(decision: Decision) -> bool:
    """Whether the log names it: the first time, then the 2nd, 4th, 8th and so on."""
    return decision.times & (decision.times - 1) == 0
