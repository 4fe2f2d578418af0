"""The loop's inbox, and threads that do one thing at a time and put the answer there.

They are daemons: a call that never returns must not keep the process from ending.
"""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.consumer.core.inputs import Input, InterruptedCallError
from penstock.errors import PenstockError
from penstock.kafka_io.mailbox import Mailbox, MailboxTrouble, NotFromLeader
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.pipeline.failures import ENDS_THE_PROCESS

_MAILBOX_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Signalled:
    """SIGTERM or SIGINT has come."""

    number: int


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """A thread has done what it was asked. The loop makes the core's input of it, if any."""

    as_input: Callable[[int], Input | None]


@dataclass(frozen=True, slots=True)
class MailboxCrashed:
    """The mailbox thread ended by an error that nobody expected."""

    error: Exception


Item = Signalled | WorkerAnswer | KafkaRecord | MailboxTrouble | NotFromLeader | MailboxCrashed
OnResult = Callable[[int, Any], Input | None]
OnError = Callable[[int, Exception], Input | None]


class Inbox:
    """Everything that reaches the loop. `put` may be called from any thread and from signals."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def put(self, item: Item) -> None:
        self._queue.put(item)

    def take(self, timeout_s: float) -> list[Item]:
        """Everything that is there; waits for the first item."""
        items: list[Item] = []
        try:
            items.append(self._queue.get(timeout=max(0.0, timeout_s)))
            while True:
                items.append(self._queue.get_nowait())
        except queue.Empty:
            return items


class Worker:
    """One thread that makes the calls it is asked for, one after another."""

    def __init__(self, name: str, inbox: Inbox) -> None:
        self._inbox = inbox
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], OnResult, OnError]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._work, name=f"penstock-{name}", daemon=True).start()

    def ask(self, call: Callable[[], Any], on_result: OnResult, on_error: OnError) -> None:
        """`on_result` and `on_error` run in the loop's thread, with its time."""
        self._asked.put((call, on_result, on_error))

    def _work(self) -> None:
        while True:
            call, on_result, on_error = self._asked.get()
            self._inbox.put(WorkerAnswer(_called(call, on_result, on_error)))


def _called(
    call: Callable[[], Any], on_result: OnResult, on_error: OnError
) -> Callable[[int], Input | None]:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 -- the core decides what an error means
        raised = _as_exception(error)
        return lambda now_ms: on_error(now_ms, raised)
    return lambda now_ms: on_result(now_ms, result)


def _as_exception(error: BaseException) -> Exception:
    """Native code that panics raises no Exception, and would end its thread without a word.

    A consumer would then go on reporting and do nothing.
    """
    if isinstance(error, Exception):
        return error
    kind = InterruptedCallError if isinstance(error, ENDS_THE_PROCESS) else RuntimeError
    raised = kind(f"{type(error).__name__}: {error}")
    raised.__cause__ = error
    return raised


class MailboxThread:
    """Reads the mailbox all the time, also while a batch runs."""

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
            except BaseException as error:  # noqa: BLE001 -- without a mailbox it must not go on
                self._inbox.put(MailboxCrashed(_as_exception(error)))
                return

    def stop(self, timeout_s: float) -> None:
        """End the thread, then close the mailbox; a thread that does not end is left behind."""
        self._stop.set()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._mailbox.close()


def now_ms() -> int:
    """The loop's clock: only differences of it mean anything."""
    return time.monotonic_ns() // 1_000_000
