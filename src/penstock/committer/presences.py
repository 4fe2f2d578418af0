"""Says for which tables this process commits, once a second, also while a commit is under way.

A writer waits for the answer of a process that it hears. One that it does not hear is dead or
hangs. So a thread of its own says it, and falls silent when the thread that commits has not gone on
for `ANSWER_S_MAX`.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from penstock.committer.core.waiting import ANSWER_S_MAX, PRESENCE_PERIOD_S
from penstock.errors import PenstockError


class Presences:
    """For one run of the thread that commits, which calls everything here."""

    def __init__(self, say: Callable[[str], None], *, period_s: float = PRESENCE_PERIOD_S) -> None:
        self._say = say
        self._period_s = period_s
        # Held while something is said: nobody is named present after it was said that it leaves.
        self._lock = threading.Lock()
        self._tables: set[str] = set()
        self._went_on_s = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="penstock-committer-presence", daemon=True
        )

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()

    def goes_on(self) -> None:
        """The thread that commits does not hang."""
        self._went_on_s = time.monotonic()

    def add(self, table: str) -> None:
        """Say it now, and from now on."""
        with self._lock:
            self._say(table)
            self._tables.add(table)

    def remove(self, tables: Iterable[str]) -> None:
        with self._lock:
            self._tables.difference_update(tables)

    def _run(self) -> None:
        while not self._is_over.wait(self._period_s):
            with self._lock:
                if time.monotonic() - self._went_on_s > ANSWER_S_MAX:
                    continue
                for table in sorted(self._tables):
                    # The thread that commits meets the same failure, and says so.
                    with suppress(PenstockError):
                        self._say(table)
