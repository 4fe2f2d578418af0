"""An HTTP server of a test's own: it answers in the background for as long as it is entered."""

import threading
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Self


class Served:
    """For whoever has a server and wants it served on the loopback."""

    _server: ThreadingHTTPServer

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

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
