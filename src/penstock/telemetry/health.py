"""Answers health probes over HTTP: is this process alive, and is it ready?

    /healthz   200 while the loop runs, else 503: the process should be restarted
    /readyz    200 while nothing it needs is missing, else 503 with what is missing

The loop calls `beat` on every pass, and `lacks` when something is missing; a thread answers. There
are no other paths, and no request changes anything.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from penstock.errors import PenstockError

# How long ago the last pass of a loop may be while the process counts as alive.
ALIVE_WITHIN_S = 60.0
_REQUEST_TIMEOUT_S = 5.0
STARTING = "it is starting"


class Health:
    """Written by the loop, read by the server's threads."""

    def __init__(
        self,
        *,
        alive_within_s: float = ALIVE_WITHIN_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alive_within_s = alive_within_s
        self._monotonic = monotonic
        self._beat_s = monotonic()
        self._lacking: Mapping[str, str] = {"start": STARTING}

    def beat(self) -> None:
        """The loop has made a pass."""
        self._beat_s = self._monotonic()

    def begun(self) -> None:
        """The start is complete."""
        self._lacking = {name: why for name, why in self._lacking.items() if name != "start"}

    def lacks(self, name: str, why: str | None) -> None:
        """Why something is missing, under a name; None when it is there again."""
        others = {
            known: explanation for known, explanation in self._lacking.items() if known != name
        }
        self._lacking = others if why is None else {**others, name: why}

    @property
    def is_alive(self) -> bool:
        return self._monotonic() - self._beat_s <= self._alive_within_s

    @property
    def lacking(self) -> Mapping[str, str]:
        return self._lacking


def answer_to(path: str, health: Health) -> tuple[int, dict[str, Any]]:
    """The status and body for a path."""
    if path == "/healthz":
        if health.is_alive:
            return 200, {"status": "ok"}
        return 503, {"status": "unavailable", "lacking": {"loop": "it has stopped"}}
    if path == "/readyz":
        lacking = dict(health.lacking)
        if not health.is_alive:
            lacking["loop"] = "it has stopped"
        if not lacking:
            return 200, {"status": "ok"}
        return 503, {"status": "unavailable", "lacking": lacking}
    return 404, {"status": "not found"}


class HealthServer:
    """Answers between enter and exit; port 0 takes any free port."""

    def __init__(self, health: Health, port: int, host: str = "") -> None:
        handler = type("HealthHandler", (_Handler,), {"health": health})
        try:
            self._server = ThreadingHTTPServer((host, port), handler)
        except OSError as error:
            raise PenstockError(
                f"Port {port} for health probes cannot be used: {error.strerror}.",
                remedy="Choose another with --health-port.",
            ) from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="penstock-health", daemon=True
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    health: Health
    timeout = _REQUEST_TIMEOUT_S
    server_version = "penstock"
    sys_version = ""

    def do_GET(self) -> None:
        status, content = answer_to(self.path.partition("?")[0], self.health)
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Probes come every second: they are not logged."""
