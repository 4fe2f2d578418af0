"""How soon a dead process is restarted: quickly at first, then with doubling pauses.

The pause counts from the last start, so a process that ran longer than its pause restarts at once.
"""

# How often a parent looks for processes that ended.
REPAIR_EVERY_S = 0.5
PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 30.0
STEADY_AFTER_S = 10.0


def pause_s(restarts: int) -> float:
    """The pause between two starts; it doubles, so that a broken process does not use up a core."""
    return min(PAUSE_MAX_S, PAUSE_FIRST_S * 2.0**restarts)


def restarts_after(restarts: int, since_start_s: float) -> int:
    """The restart count for the next start; it falls back to 1 after a steady run.

    The time of death is not recorded, only the time of this restart. A process that dies early is
    restarted when its pause ends, so one restarted after twice its pause was steady.
    """
    was_steady = since_start_s > max(STEADY_AFTER_S, 2 * pause_s(restarts))
    return 1 if was_steady else restarts + 1
