"""What follows from an objective: how old a record may be when it is visible in the lake.

People know how fresh their lake must be. Head room, batch time, catch-up, the scale-down window
and spares follow from that and from what was measured, each with its reason in a sentence. A
person who sets one of these numbers keeps it: whoever applies this leaves set options alone.

docs/development/studies/objective.md says how far the objective is kept, and at what price.
"""

from dataclasses import dataclass
from math import log2, sqrt

from penstock.model.sentences import duration_text

FRESHNESS_S_DEFAULT = 10.0
# The settings take no other.
FRESHNESS_S_MIN, FRESHNESS_S_MAX = 1.0, 86_400.0
SHARE_DEFAULT = 0.99

# Before anything was measured: a local consumer starts within this, and a move takes this long
# beside the batch that it waits for.
START_S_ASSUMED = 10.0
MOVE_S_ASSUMED = 1.0
# From a rise of the load until the plan against it: the monitor settles, two measurements agree.
NOTICED_S = 5.0

# A record waits for the batch before its own, and then for its own: two batches. So a batch gets a
# fifth, and three fifths are left for waits, moves and overloads. Short batches carry less, so a
# tight objective gives them three tenths, up to so many seconds.
_BATCH_PART = 5
_TIGHT_BATCH_SHARE, _TIGHT_BATCH_S_MAX = 0.3, 1.0
_BATCH_S_MAX = 10.0
_PERIOD_PART = 10
_PERIOD_S_MIN, _PERIOD_S_MAX = 0.1, 10.0
_LONGEST_S_MAX = 300.0
_IDLE_PART = 20
_IDLE_S_MIN, _IDLE_S_MAX = 0.05, 0.5
_OVER_CAPACITY_S_MIN, _OVER_CAPACITY_S_MAX = 1.0, 10.0
_CATCH_UP = 12
_CATCH_UP_S_MIN, _CATCH_UP_S_MAX = 30.0, 1800.0
_SCALE_DOWN_S_SHORT, _SCALE_DOWN_S_LONG = 60.0, 300.0
# A job may run a little late, and the peaks of a window are forgotten in tenths of it.
_RETURN_LATE_S = 60.0
UTILISATION_MIN, UTILISATION_MAX = 0.5, 0.95
# Before rises are measured: 5 % more for an objective twice as loose as the default, and less for a
# tighter one, within narrower bounds.
_UNMEASURED_AT_DEFAULT = 0.85
_UNMEASURED_MIN, _UNMEASURED_MAX = 0.7, 0.9
_UTILISATION_STEP = 0.05
# A load that rises by no more than the least head room in nearly all of the time is calm: nobody
# must start in a hurry, unless starts take minutes. Nearly all is so much that one job in some
# hours makes a load restless: otherwise each one would bring the spare back for a while.
CALM_RISE_MAX = 1 - UTILISATION_MAX
NEARLY_ALL = 0.999
_CALM_START_S_MAX = 60.0
# A rise makes records late until a plan helps, and until the backlog is gone.
_LATE_LOOKS_OF_A_RISE = 2
# An objective of this many starts needs no consumer that waits warm.
_STARTS_WITHOUT_SPARES = 2


@dataclass(frozen=True, slots=True)
class Objective:
    """How old a record may be when it is visible, and for which share of the records."""

    freshness_s: float = FRESHNESS_S_DEFAULT
    share: float = SHARE_DEFAULT

    @property
    def rises_covered(self) -> float:
        """The share of the rises that head room must cover: each makes several looks late."""
        started_s = reaction_s(self) + START_S_ASSUMED
        looks = max(_LATE_LOOKS_OF_A_RISE, started_s / self.freshness_s)
        return 1 - (1 - self.share) / looks


@dataclass(frozen=True, slots=True)
class Measured:
    """What the running group has shown; None where nothing is known yet."""

    # How long consumers take to start.
    start_s: float | None = None
    # How far a consumer's load rises above the highest of its window before a plan helps, as a
    # share of its capacity: not exceeded in the objective's share of the time.
    rise: float | None = None
    # The same, not exceeded in nearly all of the time.
    rare_rise: float | None = None
    # After how long the peak of the group comes again, where it does.
    peak_returns_s: float | None = None


@dataclass(frozen=True, slots=True)
class DerivedOption:
    """The value of an option that follows from the objective, and why."""

    option: str
    value: float
    reason: str


def compared_freshness_s(own_s: float) -> tuple[float, ...]:
    """The objective itself, then the tighter and the looser one whose price is told beside it.

    Half of it and twice as much, as far as the settings take such an objective. Where they take no
    tighter or no looser one, there is none.
    """
    others = (max(FRESHNESS_S_MIN, own_s / 2), min(FRESHNESS_S_MAX, own_s * 2))
    return (own_s, *(other_s for other_s in others if other_s != own_s))


def derived_options(
    objective: Objective, measured: Measured | None = None
) -> tuple[DerivedOption, ...]:
    """Every option that follows from the objective, in the order of the settings."""
    measured = measured or Measured()
    return (
        *_for_consumers(objective),
        *_for_the_packing(objective, measured),
        *_for_the_controller(objective, measured),
    )


def batch_time_s(objective: Objective) -> float:
    fresh_s = objective.freshness_s
    tight_s = min(_TIGHT_BATCH_SHARE * fresh_s, _TIGHT_BATCH_S_MAX)
    return _within(fresh_s / _BATCH_PART, tight_s, _BATCH_S_MAX)


def reaction_s(objective: Objective) -> float:
    """From a rise of the load until its partitions have moved, with a consumer at hand."""
    over_s = _over_capacity_s(objective)
    return NOTICED_S + over_s + MOVE_S_ASSUMED + batch_time_s(objective)


def _for_consumers(objective: Objective) -> tuple[DerivedOption, ...]:
    fresh_s, batch_s = objective.freshness_s, batch_time_s(objective)
    period_s = _within(fresh_s / _PERIOD_PART, _PERIOD_S_MIN, _PERIOD_S_MAX)
    idle_s = _within(fresh_s / _IDLE_PART, _IDLE_S_MIN, _IDLE_S_MAX)
    of = f"of {duration_text(fresh_s)}"
    return (
        DerivedOption(
            "consumer.batch_time",
            batch_s,
            f"{batch_s / fresh_s:.2g} {of}: a record waits for the batch before, and its own",
        ),
        DerivedOption(
            "consumer.backlog_batch_time",
            2 * batch_s,
            "twice the batch time: long batches carry more while there is a backlog",
        ),
        DerivedOption(
            "consumer.batch_period",
            period_s,
            f"a tenth {of}: fewer and larger files where nobody waits for them",
        ),
        DerivedOption(
            "consumer.batch_period_longest",
            min(fresh_s / 2, _LONGEST_S_MAX),
            f"half {of}: so long may many writers of one table wait for each other",
        ),
        DerivedOption(
            "consumer.idle_wait", idle_s, f"a twentieth {of}, and at most {_IDLE_S_MAX:g} s"
        ),
    )


def _for_the_packing(objective: Objective, measured: Measured) -> tuple[DerivedOption, ...]:
    part = f"a fifth of {duration_text(objective.freshness_s)}"
    return (
        _target_utilisation(objective, measured),
        _scale_down_period(objective, measured),
        DerivedOption(
            "packing.over_capacity_for",
            _over_capacity_s(objective),
            f"{part}: an overload must last before it is worth moves",
        ),
    )


def _scale_down_period(objective: Objective, measured: Measured) -> DerivedOption:
    """How long a peak is kept: until the next one, where it comes again and again."""
    usual, returns_s = _kept_without_a_next_one(objective, measured), measured.peak_returns_s
    if returns_s is None or returns_s + _RETURN_LATE_S <= usual.value:
        return usual
    reason = (
        f"the peak comes again within {duration_text(returns_s)}, so it is kept until then and for "
        f"{duration_text(_RETURN_LATE_S)} more: else consumers would start and end with each one"
    )
    return DerivedOption(usual.option, returns_s + _RETURN_LATE_S, reason)


def _kept_without_a_next_one(objective: Objective, measured: Measured) -> DerivedOption:
    """Growing again makes records late, unless they may wait for it."""
    name, reaction = "packing.scale_down_period", reaction_s(objective)
    if is_calm(measured):
        reason = "the load is calm, so peaks are kept for a short time"
        return DerivedOption(name, _SCALE_DOWN_S_SHORT, reason)
    if measured.rise is not None and objective.freshness_s >= reaction:
        reason = (
            f"records may wait the {duration_text(reaction)} until a plan helps, and how far loads "
            "rise above a peak is known, so peaks are kept for a short time"
        )
        return DerivedOption(name, _SCALE_DOWN_S_SHORT, reason)
    long_s = _SCALE_DOWN_S_LONG * sqrt(FRESHNESS_S_DEFAULT / objective.freshness_s)
    kept_s = float(round(_within(long_s, _SCALE_DOWN_S_SHORT, _SCALE_DOWN_S_LONG)))
    reason = "growing again makes records late, so peaks are kept for minutes"
    return DerivedOption(name, kept_s, reason)


def _over_capacity_s(objective: Objective) -> float:
    part_s = objective.freshness_s / _BATCH_PART
    return _within(part_s, _OVER_CAPACITY_S_MIN, _OVER_CAPACITY_S_MAX)


def _target_utilisation(objective: Objective, measured: Measured) -> DerivedOption:
    """How full consumers are packed: what rises before a plan helps must be carried or may wait.

    A load that rises at once by r (a share of the capacity) from a fill of u leaves a backlog of
    u + r - 1 for each second until a plan helps. The objective allows as many seconds of backlog as
    two batches and a move leave of it.
    """
    name = "packing.target_utilisation"
    if measured.rise is None:
        doubled = log2(objective.freshness_s / FRESHNESS_S_DEFAULT)
        careful = _UNMEASURED_AT_DEFAULT + _UTILISATION_STEP * doubled
        reason = "how far loads rise is not measured yet, so consumers are filled with care"
        filled = _in_steps(_within(careful, _UNMEASURED_MIN, _UNMEASURED_MAX))
        return DerivedOption(name, filled, reason)
    rise, reaction = measured.rise, reaction_s(objective)
    left_s = max(0.0, objective.freshness_s - 2 * batch_time_s(objective) - MOVE_S_ASSUMED)
    full = 1 - rise + left_s / reaction
    return DerivedOption(
        name,
        _in_steps(_within(full, UTILISATION_MIN, UTILISATION_MAX)),
        f"a consumer's load rises by {rise:.0%} of its capacity in the {duration_text(reaction)} "
        f"until a plan helps, and {duration_text(left_s)} of backlog are within the objective",
    )


def _for_the_controller(objective: Objective, measured: Measured) -> tuple[DerivedOption, ...]:
    fresh_s = objective.freshness_s
    catch_up_s = _within(_CATCH_UP * fresh_s, _CATCH_UP_S_MIN, _CATCH_UP_S_MAX)
    start_s = max(START_S_ASSUMED, measured.start_s or 0.0)
    known = "assumed" if measured.start_s is None else "measured"
    starts = f"a consumer starts in {duration_text(start_s)} ({known})"
    spares, reason = 1, f"{starts}, which the objective cannot wait for"
    if fresh_s >= _STARTS_WITHOUT_SPARES * start_s:
        spares = 0
        reason = f"{starts}, the objective can wait for {_STARTS_WITHOUT_SPARES} of them"
    elif is_calm(measured) and start_s <= _CALM_START_S_MAX:
        spares = 0
        reason = (
            f"the load is calm: it rises by {measured.rare_rise:.0%} of a consumer's capacity at "
            "most until a plan helps, which the consumers have room for"
        )
    return (
        DerivedOption("controller.spare_consumers", spares, reason),
        DerivedOption(
            "controller.catch_up",
            catch_up_s,
            f"{_CATCH_UP} times {duration_text(fresh_s)}: a backlog is late until it is gone",
        ),
        DerivedOption(
            "controller.behind_tolerated",
            fresh_s / 2,
            f"half of {duration_text(fresh_s)}: a smaller group must not be late at once",
        ),
    )


def is_calm(measured: Measured) -> bool:
    """Whether loads rise so little that every consumer has room for it; unknown is not calm."""
    return measured.rare_rise is not None and measured.rare_rise <= CALM_RISE_MAX


def _in_steps(share: float) -> float:
    """Not more than this, in steps: a figure that changes a little does not move partitions."""
    return round(int(share / _UTILISATION_STEP + 1e-9) * _UTILISATION_STEP, 2)


def _within(value: float, low: float, high: float) -> float:
    return min(high, max(low, value))
