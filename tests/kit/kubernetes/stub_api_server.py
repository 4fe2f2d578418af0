"""A stub API server, for answers that a real one does not give on demand."""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes.client import ApiClient, Configuration

from kit.kubernetes.served import Served
from penstock.deployment.kubernetes.process.credentials import Access

# (method, path with query, body) -> (status, body, further headers)
Answering = Callable[[str, str, Any], tuple[int, Any, dict[str, str]]]


class StubApiServer(Served):
    """Answers with a function, and records the requests."""

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
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def access(self) -> Access:
        configuration = Configuration()
        configuration.host = self.host
        configuration.retries = False
        return Access(ApiClient(configuration), "here", "stub")
