"""A proxy between the back-end and a real API server that harms what a test wants harmed.

It speaks plain HTTP to us and TLS to the server, passes everything through, and remembers it. A
test plants faults: an answer instead of the server's own, or the server's own answer thrown away
after it was obeyed, or a list from some time ago.
"""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kit.kubernetes.kubernetes_cluster import Cluster
from kit.kubernetes.served import Served

# (method, path) -> status to answer with; None passes.
Before = Callable[[str, str], int | None]
# (method, path, status, body) -> what to answer instead.
After = Callable[[str, str, int, bytes], tuple[int, bytes]]


def passes(_: str, __: str) -> int | None:
    return None


def as_it_came(_: str, __: str, status: int, body: bytes) -> tuple[int, bytes]:
    return status, body


class FaultyProxy(Served):
    def __init__(self, cluster: Cluster) -> None:
        self.before: Before = passes
        self.after: After = as_it_came
        self.seen: list[tuple[str, str, int]] = []
        self.target = cluster.client.configuration.host
        self.trusted = ssl.create_default_context(cafile=str(cluster.authority))
        handler = type("ProxyHandler", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), handler)

    def count(self, method: str, part: str) -> int:
        """How many calls of this method had this in their path."""
        return sum(1 for one in list(self.seen) if one[0] == method and part in one[1])


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that closes a watch is no error."""


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultyProxy

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        status = self.proxy.before(self.command, self.path)
        if status is not None:
            explanation = json.dumps({"kind": "Status", "message": "planted"}).encode()
            self.answer(status, explanation)
        elif "watch=true" in self.path:
            self.stream()
        else:
            self.answer(*self.passed(body))

    def onward(self, body: bytes | None = None) -> urllib.request.Request:
        kept = {
            name: value
            for name, value in self.headers.items()
            if name.lower() in {"authorization", "content-type", "accept"}
        }
        return urllib.request.Request(  # noqa: S310 -- the address of the test's own cluster
            f"{self.proxy.target}{self.path}", data=body, headers=kept, method=self.command
        )

    def opened(self, body: bytes | None = None) -> Any:
        return urllib.request.urlopen(  # noqa: S310 -- likewise
            self.onward(body), context=self.proxy.trusted
        )

    def passed(self, body: bytes | None) -> tuple[int, bytes]:
        try:
            with self.opened(body) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, content = error.code, error.read()
        except OSError:
            status, content = 502, b"{}"
        return self.proxy.after(self.command, self.path, status, content)

    def answer(self, status: int, content: bytes) -> None:
        self.proxy.seen.append((self.command, self.path, status))
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self) -> None:
        self.proxy.seen.append((self.command, self.path, 200))
        try:
            answer = self.opened()
        except OSError:
            self.answer(502, b"{}")
            return
        self.send_response(200)
        # Without chunks the client would wait for a full buffer before it sees a change.
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with answer:
            for line in answer:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 -- its names

    def log_message(self, *_: object) -> None:
        """Quiet."""


def once(method: str, part: str, status: int) -> Before:
    """The first such call is answered with this; the others pass."""
    left: list[Any] = [None]

    def before(asked: str, path: str) -> int | None:
        if asked == method and part in path and "watch=true" not in path and left:
            left.pop()
            return status
        return None

    return before
