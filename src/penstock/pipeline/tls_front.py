"""Serves TLS in front of a Spark Connect server, which has none of its own.

    python -m penstock.pipeline.tls_front LISTEN_ON PORT SERVER_PORT CERTIFICATE_FILE KEY_FILE

It decrypts, and passes every byte on to the server, which listens on the loopback of this machine.
The certificate is read again for a new connection when its file has changed.
"""

import asyncio
import contextlib
import ssl
import sys
from pathlib import Path

SERVER_HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 16


class _Certificate:
    """The files of a certificate; `refresh` reads them again when they have changed."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._read_at = (0, 0)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["h2"])  # gRPC speaks nothing else
        self.refresh()

    def refresh(self) -> None:
        certificate, key = self._files
        changed_at = (certificate.stat().st_mtime_ns, key.stat().st_mtime_ns)
        if changed_at != self._read_at:
            self.context.load_cert_chain(certificate, key)
            self._read_at = changed_at


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Until one side ends, however it does."""
    with contextlib.suppress(OSError):  # a broken connection ends like a closed one
        while chunk := await source.read(_CHUNK_BYTES):
            target.write(chunk)
            await target.drain()
    target.close()


async def serve(listen_on: str, port: int, server_port: int, certificate: _Certificate) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):  # files that are being replaced: the former ones count
            certificate.refresh()
        try:
            inner_reader, inner_writer = await asyncio.open_connection(SERVER_HOST, server_port)
        except OSError:
            writer.close()  # the client tries again
            return
        await asyncio.gather(_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))

    server = await asyncio.start_server(connected, listen_on, port, ssl=certificate.context)
    async with server:
        await server.serve_forever()


def front_command(
    listen_on: str, port: int, server_port: int, certificate: str, key: str
) -> list[str]:
    """The command that serves TLS in a process of its own."""
    module = [sys.executable, "-m", "penstock.pipeline.tls_front"]
    return [*module, listen_on, str(port), str(server_port), certificate, key]


if __name__ == "__main__":
    host, outer, inner, certificate_file, key_file = sys.argv[1:]
    files = _Certificate(Path(certificate_file), Path(key_file))
    asyncio.run(serve(host, int(outer), int(inner), files))
