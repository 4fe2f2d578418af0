"""What a command waits for, and that it goes on: nothing is silent for more than a few seconds.

    with ToldProgress() as tell:
        tell("starting Spark")      # starting Spark
        start_spark()               # still starting Spark, 10 s
        tell("Spark at sc://...")   # a line that says that something is done ends it

The lines go to stderr, so data on stdout stays whole.
"""

import threading
import time
from collections.abc import Callable
from typing import Self

from penstock.cli.console import say
from penstock.model.sentences import duration_text

# The first time it is said again; then after twice as long, up to the most.
FIRST_AFTER_S = 5.0
EVERY_S_MAX = 30.0


class ToldProgress:
    def __init__(
        self,
        what: str | None = None,
        *,
        print_line: Callable[[str], None] = say,
        first_after_s: float = FIRST_AFTER_S,
    ) -> None:
        """`what` is told at once, where it is given."""
        self._print_line = print_line
        self._first_after_s = first_after_s
        self._given = what
        self._told = threading.Condition()
        self._what: str | None = None
        self._since_s = 0.0
        self._is_over = False
        self._teller = threading.Thread(target=self._repeat, name="going-on", daemon=True)

    def __enter__(self) -> Self:
        if self._given is not None:
            self(self._given)
        self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._told:
            self._is_over = True
            self._told.notify()
        self._teller.join()

    def __call__(self, line: str) -> None:
        """Print a line. One that begins with what is done (`starting ...`) is said again."""
        first = line.split(maxsplit=1)[0] if line.strip() else ""
        with self._told:
            self._print_line(line)
            self._begin(line if first.endswith("ing") else None)

    def if_long(self, what: str) -> None:
        """What is waited for from now on: it is mostly quick, so it is said only if it is not."""
        with self._told:
            self._begin(what)

    def _begin(self, what: str | None) -> None:
        """The lock is held."""
        self._what, self._since_s = what, time.monotonic()
        self._told.notify()

    def _repeat(self) -> None:
        with self._told:
            while not self._is_over:
                self._repeat_one()

    def _repeat_one(self) -> None:
        """Say one line again and again, until there is another one; the lock is held."""
        what, since_s = self._what, self._since_s
        if what is None:
            self._told.wait()
            return
        due_s, pause_s = since_s + self._first_after_s, self._first_after_s
        while not self._is_over and (what, since_s) == (self._what, self._since_s):
            now_s = time.monotonic()
            if now_s < due_s:
                self._told.wait(due_s - now_s)
                continue
            self._print_line(f"still {what}, {duration_text(round(now_s - since_s, 1))}")
            due_s, pause_s = now_s + pause_s, min(2 * pause_s, EVERY_S_MAX)
