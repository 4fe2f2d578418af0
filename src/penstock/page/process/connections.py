"""Keeps slow clients from using up the server.

uvicorn waits without end for a request that never becomes complete, and for a client that does not
read its answer. Here every connection is looked at once a second: one that does neither in time is
ended. When there are too many, the one that has waited longest for a request makes room, so that a
thousand slow connections stand in nobody's way. A connection with TLS counts only when its
handshake is complete, which has as much time as a request.
"""

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Well below the number of files that a process may usually have open.
CONNECTIONS_MAX = 256
REQUEST_WITHIN_S = 10.0
READ_WITHIN_S = 20.0
LOOK_EVERY_S = 1.0


class GuardedLoop(asyncio.SelectorEventLoop):
    """Limits the time of a TLS handshake: asyncio allows a minute, and uvicorn cannot change it."""

    async def create_server(self, *args: Any, **given: Any) -> asyncio.Server:
        if given.get("ssl") is not None:
            given["ssl_handshake_timeout"] = REQUEST_WITHIN_S
        return await super().create_server(*args, **given)


class GuardedProtocol(H11Protocol):
    """A connection that remembers since when it waits for its client."""

    open: "dict[GuardedProtocol, None]" = {}  # noqa: RUF012 -- all connections of the process

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.waiting_since_s = time.monotonic()
        self.unread_bytes = 0
        self.unread_since_s = self.waiting_since_s

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.waiting_since_s = time.monotonic()
        self.open[self] = None
        if len(self.open) > CONNECTIONS_MAX:
            waiting = [one for one in self.open if one.is_waiting and one is not self]
            min(waiting, key=lambda one: one.waiting_since_s, default=self).end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.open.pop(self, None)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self.waiting_since_s = time.monotonic()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        self.open.pop(self, None)
        self.transport.abort()

    def look(self, now_s: float) -> None:
        """End it if its client has had its time."""
        unread = self.transport.get_write_buffer_size()
        if unread == 0 or unread < self.unread_bytes:
            self.unread_since_s = now_s
        self.unread_bytes = unread
        reads_slowly = unread and now_s - self.unread_since_s > READ_WITHIN_S
        asks_slowly = self.is_waiting and now_s - self.waiting_since_s > REQUEST_WITHIN_S
        if reads_slowly or (asks_slowly and not unread):
            self.end()


async def end_slow_clients() -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        now_s = time.monotonic()
        for one in list(GuardedProtocol.open):
            one.look(now_s)
