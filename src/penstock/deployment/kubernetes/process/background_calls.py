"""Makes calls that only inform people (Events, conditions) on a thread of their own.

No caller waits for them. A call that fails or does not fit in the queue is dropped and counted.
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
        threading.Thread(target=self._run, name="penstock-background-calls", daemon=True).start()

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
