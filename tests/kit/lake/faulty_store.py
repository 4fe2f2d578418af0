"""A proxy between a client and a real S3 server that harms what a test wants harmed.

It passes bytes both ways and looks only at the first line of each request. A test says which
requests meet which fault: they never reach the server, or late, or the server obeys and its answer
is lost, or the connection is closed.
"""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from kit.lake.s3_server import S3Server

_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) (\S+) HTTP/1\.1\r\n")
_CHUNK_BYTES = 65_536
# (method, path) -> whether the request meets the fault.
Chosen = Callable[[str, str], bool]


class Fault(Enum):
    SILENCE = auto()  # the request is taken, and nothing follows
    LOST_ANSWER = auto()  # the server obeys, and the connection ends without an answer
    LATE_REQUEST = auto()  # the connection ends at once, and the server obeys later
    CLOSED = auto()  # the connection ends at once
    SLOW = auto()  # every piece of a request waits


def every_request(_: str, __: str) -> bool:
    return True


def puts_an_entry(method: str, path: str) -> bool:
    return method == "PUT" and "/_delta_log/" in path


def puts_data(method: str, path: str) -> bool:
    return method in {"PUT", "POST"} and "/data/" in path


@dataclass(slots=True)
class _Harm:
    fault: Fault
    chosen: Chosen
    left: int
    wait_s: float


@dataclass
class FaultyStore:
    server: S3Server
    seen: list[tuple[str, str]] = field(default_factory=list)
    _harm: _Harm | None = None
    _connections: list[socket.socket] = field(default_factory=list)
    _met: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def behind(self) -> S3Server:
        """The server as a client sees it through this proxy."""
        host, port = self._listener.getsockname()
        return replace(self.server, endpoint=f"http://{host}:{port}")

    def harm(
        self,
        fault: Fault,
        chosen: Chosen = every_request,
        *,
        times: int = 10**9,
        wait_s: float = 0.0,
    ) -> None:
        """From now on, until `heal` or until so many requests met it."""
        with self._changed:
            self._harm = _Harm(fault, chosen, times, wait_s)
            self._met = 0

    def heal(self) -> None:
        """What was taken and not answered stays so: a client that still waits asks again."""
        with self._changed:
            self._harm = None

    def until_met(self, times: int = 1, within_s: float = 60) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._met >= times, within_s), "no such request"

    def run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the test is over
            self._start(self._serve, client)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._listener.close()
        for one in self._connections:
            one.close()

    def _start(self, work: Callable[..., None], *given: object) -> None:
        threading.Thread(target=work, args=given, daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        host, _, port = self.server.endpoint.removeprefix("http://").partition(":")
        with suppress(OSError), socket.create_connection((host, int(port))) as server:
            self._connections += [client, server]
            loses_answers = threading.Event()
            self._start(self._pass_answers, server, client, loses_answers)
            self._pass_requests(client, server, loses_answers)
        with suppress(OSError):
            client.close()

    def _pass_requests(
        self, client: socket.socket, server: socket.socket, loses_answers: threading.Event
    ) -> None:
        while chunk := client.recv(_CHUNK_BYTES):
            begun = _REQUEST.match(chunk)
            harm = None if begun is None else self._fault_of(begun[1].decode(), begun[2].decode())
            if harm is not None and harm.fault is Fault.SILENCE:
                while client.recv(_CHUNK_BYTES):
                    """Taken, and never passed on, until the client gives up."""
                return
            if harm is not None and harm.fault is Fault.CLOSED:
                return
            if harm is not None and harm.fault is Fault.LATE_REQUEST:
                self._send_late(client, server, chunk, harm.wait_s)
                return
            if harm is not None and harm.fault is Fault.LOST_ANSWER:
                loses_answers.set()
            slow = self._harm
            if slow is not None and slow.fault is Fault.SLOW:
                time.sleep(slow.wait_s)
            server.sendall(chunk)

    def _send_late(
        self, client: socket.socket, server: socket.socket, chunk: bytes, wait_s: float
    ) -> None:
        """The client is told nothing; its whole request goes on when the time is over."""
        client.settimeout(0.2)
        whole = chunk
        with suppress(TimeoutError):
            while more := client.recv(_CHUNK_BYTES):
                whole += more
        client.close()
        time.sleep(wait_s)
        server.sendall(whole)
        server.recv(_CHUNK_BYTES)

    def _pass_answers(
        self, server: socket.socket, client: socket.socket, loses_answers: threading.Event
    ) -> None:
        with suppress(OSError):
            while chunk := server.recv(_CHUNK_BYTES):
                if loses_answers.is_set():
                    break
                client.sendall(chunk)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _fault_of(self, method: str, path: str) -> _Harm | None:
        with self._changed:
            self.seen.append((method, path))
            harm = self._harm
            if harm is None or harm.left <= 0 or not harm.chosen(method, path):
                return None
            harm.left -= 1
            self._met += 1
            self._changed.notify_all()
            return harm


@contextmanager
def faulty_store(server: S3Server) -> Iterator[FaultyStore]:
    store = FaultyStore(server)
    thread = threading.Thread(target=store.run, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.close()
        thread.join(5)
