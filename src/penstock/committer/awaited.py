"""The batches of this process that wait for an answer, and who was heard. Shared by threads."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from penstock.committer.core.waiting import Committer


class Awaited:
    """One batch. `version` is the one that may have it, once there is an answer."""

    def __init__(self) -> None:
        self._has_come = threading.Event()
        self._is_answer = False
        self.version: int | None = None

    def wait(self, timeout_s: float) -> bool:
        """Whether an answer came in time."""
        self._has_come.wait(timeout_s)
        return self._is_answer

    def wait_on(self, seconds_left: Callable[[], float]) -> bool:
        """Whether an answer came while time was left, of which there may be more meanwhile."""
        while not self._has_come.is_set() and (timeout_s := seconds_left()) > 0:
            self._has_come.wait(timeout_s)
        return self._is_answer

    def answer(self, version: int | None) -> None:
        self.version = version
        self._is_answer = True
        self._has_come.set()

    def give_up(self) -> None:
        self._has_come.set()


class AwaitedBatches:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._awaited: dict[str, Awaited] = {}
        self._committers: dict[str, Committer] = {}
        self._versions: dict[str, int] = {}
        self._has_given_up = False

    @property
    def has_given_up(self) -> bool:
        with self._lock:
            return self._has_given_up

    @contextmanager
    def waiting_for(self, batch: str) -> Iterator[Awaited]:
        """Its answer may come from now on."""
        awaited = Awaited()
        with self._lock:
            self._awaited[batch] = awaited
            if self._has_given_up:
                awaited.give_up()
        try:
            yield awaited
        finally:
            with self._lock:
                del self._awaited[batch]

    def answer(self, batches: Iterable[str], version: int | None) -> None:
        """Those that nobody waits for are of other consumers, or late."""
        with self._lock:
            for batch in batches:
                if batch in self._awaited:
                    self._awaited[batch].answer(version)

    def give_up(self) -> None:
        """For ever: nobody waits from now on."""
        with self._lock:
            self._has_given_up = True
            for awaited in self._awaited.values():
                awaited.give_up()

    def committer(self, table: str) -> Committer:
        with self._lock:
            return self._committers.get(table, Committer())

    def heard(self, table: str, *, commit_s: float, is_leaving: bool) -> None:
        with self._lock:
            known = self._committers.get(table, Committer())
            heard = known.left() if is_leaving else known.heard(self._clock(), commit_s)
            self._committers[table] = heard

    def note_outcome(self, table: str, *, is_committed: bool) -> None:
        with self._lock:
            known = self._committers.get(table, Committer())
            self._committers[table] = (
                known.committed() if is_committed else known.not_committed(self._clock())
            )

    def note_missed(self, table: str) -> None:
        """An answer did not come in time."""
        with self._lock:
            known = self._committers.get(table, Committer())
            self._committers[table] = known.not_answered(self._clock())

    def heard_version(self, table: str, version: int) -> None:
        with self._lock:
            self._versions[table] = version

    def last_version(self, table: str) -> int:
        """The version that was named last, or -1. It may be forged, or of another committer."""
        with self._lock:
            return self._versions.get(table, -1)

    def forget_committers(self) -> None:
        """Nobody listens any more: what was heard is soon untrue."""
        with self._lock:
            self._committers.clear()
            self._versions.clear()
