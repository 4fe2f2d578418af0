"""How long the writers of one table need when each of them commits once, one after another.

A commit is the next version of its table or none, so the commits of a table never overlap. The
writers are known from the entries of the log, which are read anyway; how long one turn takes is
measured from the attempt that made the commit. Consumers begin batches by it (see `cadence` in the
consumer's core). Nothing depends on it but the time of the next batch.
"""

import statistics
import time
from collections import deque
from collections.abc import Callable

# A writer whose last commit was read longer ago counts no more.
WINDOW_S = 15.0
# A turn counts for at least this long, however quick the storage is: every reader reads every
# entry, and every commit brings files.
COMMIT_S_MIN = 0.025
_COMMITS_REMEMBERED = 5
_WRITERS_MAX = 1000
# `data/<group>/<writer>`, with which the name of every batch begins.
_PARTS_OF_A_WRITER = 3


class CommitRound:
    """Of one table, as this process sees it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen_s: dict[str, float] = {}
        self._commits_s: deque[float] = deque(maxlen=_COMMITS_REMEMBERED)

    def seen(self, batch: str | None) -> None:
        """An entry that is new was read, or made here. Entries of other tools name no batch."""
        parts = (batch or "").split("/")[:_PARTS_OF_A_WRITER]
        writer = "/".join(parts) if len(parts) == _PARTS_OF_A_WRITER else ""
        # The one that was seen last is at the end, and the memory is bounded.
        self._seen_s.pop(writer, None)
        self._seen_s[writer] = self._clock()
        if len(self._seen_s) > _WRITERS_MAX:
            del self._seen_s[next(iter(self._seen_s))]

    def took(self, seconds: float) -> None:
        """A commit was made; from its request until it was known to be part of the table."""
        self._commits_s.append(seconds)

    @property
    def writers(self) -> int:
        since_s = self._clock() - WINDOW_S
        self._seen_s = {name: at_s for name, at_s in self._seen_s.items() if at_s >= since_s}
        return len(self._seen_s)

    @property
    def seconds(self) -> float:
        """The usual time of a commit, for each writer; 0 before the first one."""
        if not self._commits_s:
            return 0.0
        return self.writers * max(COMMIT_S_MIN, statistics.median(self._commits_s))
