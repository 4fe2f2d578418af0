"""An HTTP server whose clients cannot use up the process that it answers for.

The standard library's server takes any number of connections, each with a thread of its own, and
waits for each of them. A thousand slow ones would take the threads and the open files of a
controller, and no probe would be answered. Here connections are few and short. When there are too
many, the one that has waited longest for its request makes room.
"""

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONNECTIONS_MAX = 64
REQUEST_WITHIN_S = 5.0
# Connections that wait until they are taken: with few places an honest one waits for seconds.
_WAITING_MAX = 512


class GuardedServer(ThreadingHTTPServer):
    """Its handlers are `GuardedHandler`s: each tells when its request is there."""

    daemon_threads = True
    request_queue_size = _WAITING_MAX

    def __init__(self, address: tuple[str, int], handler: "type[GuardedHandler]") -> None:
        self._lock = threading.Lock()
        # Since when; in the order in which they came.
        self._asking: dict[socket.socket, float] = {}
        self._answered: dict[socket.socket, None] = {}
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._asking[request] = time.monotonic()
            is_full = len(self._asking) + len(self._answered) > CONNECTIONS_MAX
            oldest = next(iter((*self._asking, *self._answered))) if is_full else None
        if oldest is not None:
            self._end(oldest)
        super().process_request(request, client_address)

    def asked(self, request: socket.socket) -> None:
        """Its request is there: from now on it is being answered."""
        with self._lock:
            if self._asking.pop(request, None) is not None:
                self._answered[request] = None

    def service_actions(self) -> None:
        """Called several times a second: end those that take too long to ask."""
        latest_s = time.monotonic() - REQUEST_WITHIN_S
        with self._lock:
            late = [one for one, since_s in self._asking.items() if since_s < latest_s]
        for one in late:
            self._end(one)

    def shutdown_request(self, request: Any) -> None:
        self._forget(request)
        super().shutdown_request(request)

    def _end(self, request: socket.socket) -> None:
        """Its thread waits for it, and closes it."""
        self._forget(request)
        with contextlib.suppress(OSError):  # it has ended by itself
            request.shutdown(socket.SHUT_RDWR)

    def _forget(self, request: socket.socket) -> None:
        with self._lock:
            self._asking.pop(request, None)
            self._answered.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone: nobody to tell, and nothing to log each second."""


class GuardedHandler(BaseHTTPRequestHandler):
    """Whoever inherits it has a `do_...` for each method that is answered."""

    timeout = REQUEST_WITHIN_S
    server: GuardedServer

    def parse_request(self) -> bool:
        is_whole = super().parse_request()
        if is_whole:
            self.server.asked(self.connection)
        return is_whole
