"""Calls that only inform, Events and conditions: a thread makes them, and nobody waits.

They are information: one that cannot be made is dropped and counted.
"""

import queue
import threading
from collections.abc import Callable

from penstock.deployment.interface import DeploymentError

WAITING_MAX = 1_000


class BackgroundCalls:
    def __init__(self) -> None:
        self._waiting: queue.Queue[Callable[[], object]] = queue.Queue(WAITING_MAX)
        self.dropped = 0
        threading.Thread(target=self._run, name="penstock-informing", daemon=True).start()

    def later(self, call: Callable[[], object]) -> None:
        try:
            self._waiting.put_nowait(call)
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        while True:
            call = self._waiting.get()
            try:
                call()
            except DeploymentError:
                self.dropped += 1
