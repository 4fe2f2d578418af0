"""Runs an HTTP server in the background while a `with` block lasts."""

import threading
from http.server import ThreadingHTTPServer
from typing import Self


class Served:
    """The base of test servers on the loopback."""

    _server: ThreadingHTTPServer

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
