"""Reads the group's state again and again, and tells those who follow it.

The pace follows the cost: reading, adding up and planning take at most a small share of a core. So
a snapshot of ten thousand partitions is read less often than once a second.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from penstock.controller.core.dry_run import (
    DryRun,
    dry_run,
    priced_of_question,
    problem_of_question,
    weights_of_question,
)
from penstock.errors import PenstockError
from penstock.page.core.decisions_kept import KeptDecision
from penstock.page.core.frames import Frames
from penstock.page.core.view import Json
from penstock.page.core.watch import Watch

READ_EVERY_S = 1.0
READ_EVERY_S_MAX = 6.0
SHARE_OF_A_CORE = 1 / 50
PLAN_EVERY_S = 5.0
PLAN_SHARE_OF_A_CORE = 1 / 200

News = Callable[[list[KeptDecision]], None]


class GroupWatching:
    """Owned by the event loop's thread; only reading and planning run on others."""

    def __init__(
        self, read: Callable[[], Json], *, group: str, frames: Frames | None = None
    ) -> None:
        self._read = read
        # The same thread reads always: a Kafka client is used by one.
        self._reader = ThreadPoolExecutor(1, "penstock-page-reader")
        self.group = group
        self.watch = Watch()
        self.frames = frames
        # Why there is no news; None while there is.
        self.problem: str | None = "No status was read yet."
        self.followers: set[News] = set()
        self._plan_due_s = 0.0

    async def run(self) -> None:
        while True:
            took_s = await self.look()
            await asyncio.sleep(pause_s(took_s))

    async def look(self) -> float:
        """Read once; returns the processor time that it took, in seconds.

        A busy machine or broker makes a reading longer, but not dearer: the next one does not have
        to wait for that.
        """
        begun_s = time.process_time()
        try:
            await self._look()
        except PenstockError as error:
            self._has_no_news(error)
        except Exception as error:  # noqa: BLE001 -- a status is foreign bytes: it may hold anything
            self._has_no_news(PenstockError(f"The status cannot be understood: {error!r}."))
        return time.process_time() - begun_s

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        snapshot = await loop.run_in_executor(self._reader, self._read)
        before = self.watch.view
        new = self.watch.add(snapshot)
        self.problem = None
        self._tell(new)  # before the plan, which takes a second in a large group
        if before is None or before.at_unix_ms != self.watch.view_at_unix_ms:
            await self._plan(snapshot)
            if self.frames is not None:
                self.frames.add(self.watch, self.group)

    def _has_no_news(self, error: PenstockError) -> None:
        self.problem = f"{error.message} {error.remedy}".strip()
        self.watch.grow_old(round(time.time() * 1000), error.message)
        self._tell([])

    def _tell(self, new: list[KeptDecision]) -> None:
        for follower in list(self.followers):
            follower(new)

    async def _plan(self, snapshot: Json) -> None:
        if time.monotonic() < self._plan_due_s:
            return
        begun_s = time.monotonic()
        plan = await asyncio.to_thread(_plan_of, snapshot)
        took_s = time.monotonic() - begun_s
        self.watch.take_plan(plan, snapshot["at_unix_ms"])
        self._plan_due_s = begun_s + max(PLAN_EVERY_S, took_s / PLAN_SHARE_OF_A_CORE)


def pause_s(took_s: float) -> float:
    """How long after one reading the next one is due."""
    return min(READ_EVERY_S_MAX, max(READ_EVERY_S - took_s, took_s / SHARE_OF_A_CORE))


def _plan_of(snapshot: dict[str, Any]) -> DryRun | None:
    """None where no plan can be made.

    No speeds are known, the packer fails, or its question is of a controller of another version.
    """
    try:
        asked = snapshot["question"]
        problem, weights = problem_of_question(asked), weights_of_question(asked)
        priced = priced_of_question(asked)
        return dry_run(snapshot["settings"]["algorithm"], problem, weights, priced)
    except (PenstockError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return None
