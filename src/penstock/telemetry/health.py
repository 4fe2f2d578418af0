"""Answers over HTTP: is this process alive, is it ready, and what are its metrics?

    /healthz   200 while the loop runs, else 503: the process should be restarted
    /readyz    200 while nothing it needs is missing, else 503 with what is missing
    /metrics   the metrics, for Prometheus

The loop calls `beat` on every pass, and `lacks` when something is missing; a thread answers. There
are no other paths, only GET and HEAD are answered, and no request changes anything.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from penstock.errors import PenstockError
from penstock.telemetry.exposition import CONTENT_TYPE, MetricsText
from penstock.telemetry.guarded_server import GuardedHandler, GuardedServer

# How long ago the last pass of a loop may be while the process counts as alive.
ALIVE_WITHIN_S = 60.0
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
    def is_ready(self) -> bool:
        return self.is_alive and not self._lacking

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

    def __init__(
        self, health: Health, port: int, host: str = "", metrics: MetricsText | None = None
    ) -> None:
        """Without `metrics` there is no such path."""
        handler = type("HealthHandler", (_Handler,), {"health": health, "metrics": metrics})
        try:
            self._server = GuardedServer((host, port), handler)
        except OSError as error:
            raise PenstockError(
                f"Port {port} for health probes cannot be used: {error.strerror}.",
                remedy="Choose another with --health-port.",
            ) from error
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


class _Handler(GuardedHandler):
    health: Health
    metrics: MetricsText | None
    server_version = "penstock"
    sys_version = ""

    def do_GET(self) -> None:  # noqa: N802 -- the name that http.server calls
        path = self.path.partition("?")[0]
        if path == "/metrics" and self.metrics is not None:
            self._send_metrics(self.metrics)
            return
        status, content = answer_to(path, self.health)
        self._send(status, "application/json", json.dumps(content).encode())

    def do_HEAD(self) -> None:  # noqa: N802 -- as above
        self.do_GET()

    def parse_request(self) -> bool:
        """Refuse every other method, whatever its name."""
        if not super().parse_request():
            return False
        if self.command in {"GET", "HEAD"}:
            return True
        self.close_connection = True  # what it sends along is not read
        body = json.dumps({"status": "method not allowed"}).encode()
        self._send(405, "application/json", body, {"Allow": "GET, HEAD"})
        return False

    def _send_metrics(self, metrics: MetricsText) -> None:
        if "gzip" in (self.headers.get("Accept-Encoding") or ""):
            self._send(200, CONTENT_TYPE, metrics.packed(), {"Content-Encoding": "gzip"})
        else:
            self._send(200, CONTENT_TYPE, metrics.text())

    def _send(
        self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Probes come every second: they are not logged."""
