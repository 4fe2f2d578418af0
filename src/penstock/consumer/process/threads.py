"""The loop's inbox, and threads that do one thing at a time and put what came of it there.

They are daemons: a call that never comes back must not keep the process from ending.
"""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError
from penstock.kafka_io.mailbox import Letter, Mailbox, MailboxTrouble

_MAILBOX_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Signalled:
    """SIGTERM or SIGINT has come."""

    number: int


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """A thread has done what it was asked: `then` takes the result in the loop's own thread."""

    then: Callable[[Any], None]
    failed: Callable[[Exception], None]
    result: Any = None
    error: Exception | None = None


Item = Signalled | WorkerAnswer | Letter | MailboxTrouble


class Inbox:
    """Everything that reaches the loop. `put` may be called from any thread and from signals."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def put(self, item: Item) -> None:
        self._queue.put(item)

    def take(self, timeout_s: float) -> list[Item]:
        """All that is there; waits for the first."""
        items: list[Item] = []
        try:
            items.append(self._queue.get(timeout=max(0.0, timeout_s)))
            while True:
                items.append(self._queue.get_nowait())
        except queue.Empty:
            return items


class Worker:
    """One thread that does what it is asked, one thing after another."""

    def __init__(self, name: str, inbox: Inbox) -> None:
        self._inbox = inbox
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], Any, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=f"penstock-{name}", daemon=True).start()

    def ask(
        self,
        what: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._asked.put((what, then, failed))

    def _work(self) -> None:
        while True:
            what, then, failed = self._asked.get()
            try:
                answer = WorkerAnswer(then, failed, result=what())
            except Exception as error:  # noqa: BLE001 - the loop decides what an error means
                answer = WorkerAnswer(then, failed, error=error)
            self._inbox.put(answer)


class MailboxThread:
    """Reads the mailbox all the time, whatever else goes on."""

    def __init__(self, mailbox: Mailbox, inbox: Inbox) -> None:
        self._mailbox = mailbox
        self._inbox = inbox
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="penstock-mailbox", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            try:
                for one in self._mailbox.read(_MAILBOX_WAIT_S):
                    self._inbox.put(one)
            except PenstockError as error:
                self._inbox.put(MailboxTrouble(str(error)))
                self._stop.wait(_MAILBOX_WAIT_S)
            except Exception as error:  # noqa: BLE001 - a consumer that hears nothing must not go on
                self._inbox.put(WorkerAnswer(then=_raise, failed=_raise, error=error))
                return

    def stop(self, timeout_s: float) -> None:
        """End the thread, then close the mailbox; a thread that does not end is left behind."""
        self._stop.set()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._mailbox.close()


def _raise(error: Exception) -> None:
    raise error


def now_s() -> float:
    """The loop's clock: only differences of it mean anything."""
    return time.monotonic()
