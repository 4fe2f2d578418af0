"""An API server of a few lines, for answers that a real one does not give when asked to."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from kubernetes.client import ApiClient, Configuration

from penstock.deployment.kubernetes.credentials import Access

# (method, path with query, body) -> (status, body, further headers)
Answering = Callable[[str, str, Any], tuple[int, Any, dict[str, str]]]


class StubApiServer:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, answering: Answering) -> None:
        self.asked: list[tuple[str, str]] = []
        self.tokens: list[str] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                stub.asked.append((self.command, self.path))
                stub.tokens.append(self.headers.get("Authorization", ""))
                status, content, headers = answering(self.command, self.path, body)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any  # noqa: N815 -- its names

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def access(self) -> Access:
        configuration = Configuration()
        configuration.host = self.host
        configuration.retries = False
        return Access(ApiClient(configuration), "here", "stub")

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
