"""How soon a process that died is started again: at once, and slower each time it fails to stay.

Counted from its start, so that one that lived longer than its pause waits for nothing.
"""

PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 30.0
STEADY_AFTER_S = 10.0


def pause_s(restarts: int) -> float:
    """Between two starts; it doubles, so that a broken process does not burn a core."""
    return min(PAUSE_MAX_S, PAUSE_FIRST_S * 2.0**restarts)


def restarts_after(restarts: int, since_start_s: float) -> int:
    """The count for the next start: one that stayed up has earned a quick restart again.

    Nobody wrote down when it died, only that it is being started again. One that died young is
    started when its pause is over, so whoever is past twice that has lived.
    """
    was_steady = since_start_s > max(STEADY_AFTER_S, 2 * pause_s(restarts))
    return 1 if was_steady else restarts + 1
