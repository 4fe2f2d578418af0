"""Who writes to one table, and how long those who commit need when each of them does it once.

A commit is the next version of its table or none, so the commits of a table never overlap. The
writers are known from the entries of the log, which are read anyway; how long one turn takes is
measured from the attempt that made the commit. Consumers begin batches by it (see `cadence` in the
consumer's core), and choose who commits for all of them (see the package `committer`). A commit for
several writers takes one turn, of the one that made it. No safety depends on what is counted here.
"""

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

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
        # Who made commits, and whose batches were in them.
        self._seen_s: dict[str, float] = {}
        self._carried_s: dict[str, float] = {}
        self._commits_s: deque[float] = deque(maxlen=_COMMITS_REMEMBERED)

    def seen(self, batch: str | None, together: Sequence[str] = ()) -> None:
        """An entry that is new was read, or made here. Entries of other tools name no batch.

        `together` are the batches of a commit that one writer made for several.
        """
        now_s = self._clock()
        _note(self._seen_s, batch, now_s)
        for one in together or (batch,):
            _note(self._carried_s, one, now_s)

    def took(self, seconds: float) -> None:
        """A commit was made; from its request until it was known to be part of the table."""
        self._commits_s.append(seconds)

    def handed_over(self) -> None:
        """Another one has committed for this process: how long its own turns took is long ago."""
        self._commits_s.clear()

    @property
    def writers(self) -> int:
        """How many have written to the table; another may have made their commits."""
        return len(self.writer_names)

    @property
    def writer_names(self) -> frozenset[str]:
        """Each as `data/<group>/<consumer>-<incarnation>`; empty for all other tools."""
        self._carried_s = self._lately(self._carried_s)
        return frozenset(self._carried_s)

    @property
    def seconds(self) -> float:
        """The usual time of a commit, for each that commits; 0 before the first one."""
        if not self._commits_s:
            return 0.0
        self._seen_s = self._lately(self._seen_s)
        return len(self._seen_s) * max(COMMIT_S_MIN, statistics.median(self._commits_s))

    def _lately(self, seen_s: dict[str, float]) -> dict[str, float]:
        since_s = self._clock() - WINDOW_S
        return {name: at_s for name, at_s in seen_s.items() if at_s >= since_s}


def _note(seen_s: dict[str, float], batch: str | None, now_s: float) -> None:
    parts = (batch or "").split("/")[:_PARTS_OF_A_WRITER]
    writer = "/".join(parts) if len(parts) == _PARTS_OF_A_WRITER else ""
    # The one that was seen last is at the end, and the memory is bounded.
    seen_s.pop(writer, None)
    seen_s[writer] = now_s
    if len(seen_s) > _WRITERS_MAX:
        del seen_s[next(iter(seen_s))]
