"""Every decision explains itself: a code for programs, a sentence with figures for people, a cost.

The history is bounded: the newest decisions push out the oldest.
"""

from dataclasses import dataclass
from enum import StrEnum

# Enough for an hour of a restless group; the state file stays small.
HISTORY_MAX = 200


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
    REQUEST_ANSWERED = "request_answered"
    SETTING_DROPPED = "setting_dropped"


@dataclass(frozen=True, slots=True)
class Decision:
    at_ms: int
    code: Code
    explanation: str
    plan_number: int
    # What a plan moves: partitions that pause for a moment, and the speed they are written at.
    moves: int = 0
    moved_bytes_per_s: float = 0.0


def remembered(history: tuple[Decision, ...], new: list[Decision]) -> tuple[Decision, ...]:
    """The newest decisions, at most `HISTORY_MAX` of them."""
    return (*history, *new)[-HISTORY_MAX:] if new else history
