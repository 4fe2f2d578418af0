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


class RestartPaces:
    """When each of several servers may be started again, by name."""

    def __init__(self) -> None:
        self._tried_s: dict[str, float] = {}
        self._restarts: dict[str, int] = {}

    def may_start(self, name: str, now_s: float) -> bool:
        tried_s = self._tried_s.get(name)
        return tried_s is None or now_s - tried_s >= pause_s(self._restarts[name])

    def tried(self, name: str, now_s: float) -> None:
        """A start has just succeeded or failed; the pause counts from here."""
        tried_s = self._tried_s.get(name)
        former = self._restarts.get(name, 0)
        self._restarts[name] = 1 if tried_s is None else restarts_after(former, now_s - tried_s)
        self._tried_s[name] = now_s
