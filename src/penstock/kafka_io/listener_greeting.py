"""Asks a listener what it speaks: TLS, and whether it wants a login.

Clients that speak another protocol are often told nothing at all: the connection only ends. These
greetings carry nothing of ours, neither a name nor a password.
"""

import socket
import ssl
import struct

from penstock.kafka_io.refused_connections import Refusal
from penstock.settings.sections import KafkaSettings

_WAIT_S = 1.0
_SASL_HANDSHAKE, _VERSION, _UNSUPPORTED_MECHANISM = 17, 1, 33
_NO_CLIENT, _NO_MECHANISM = -1, b"none"
_ANSWER_HEAD = struct.Struct(">iih")  # its length, the number of the request, an error code


def asked_refusal(kafka: KafkaSettings) -> Refusal | None:
    """What the first listener that answers wants and the settings do not give; None if nothing."""
    for address in kafka.bootstrap_servers.split(","):
        host, _, port = address.rpartition(":")
        place = (host.strip("[]"), int(port))
        if not kafka.security_protocol.endswith("SSL") and _speaks_tls(place):
            return Refusal.PLAIN
        if not kafka.security_protocol.startswith("SASL_") and _wants_login(
            place, with_tls=kafka.security_protocol.endswith("SSL")
        ):
            return Refusal.NO_LOGIN
    return None


def _speaks_tls(place: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(place, timeout=_WAIT_S) as plain, _encrypted(plain, place):
            return True
    except ssl.SSLError as error:
        return "alert" in str(error).lower()  # it refuses in the words of TLS
    except OSError:
        return False


def _wants_login(place: tuple[str, int], *, with_tls: bool) -> bool:
    """Whether it answers an unknown mechanism with those that it has: others refuse the request."""
    mechanism = struct.pack(">h", len(_NO_MECHANISM)) + _NO_MECHANISM
    request = struct.pack(">hhih", _SASL_HANDSHAKE, _VERSION, 1, _NO_CLIENT) + mechanism
    try:
        with socket.create_connection(place, timeout=_WAIT_S) as plain:
            if not with_tls:
                return _code_for(request, plain) == _UNSUPPORTED_MECHANISM
            with _encrypted(plain, place) as wire:
                return _code_for(request, wire) == _UNSUPPORTED_MECHANISM
    except OSError:
        return False


def _code_for(request: bytes, wire: socket.socket) -> int | None:
    """The error code of the answer; None without one."""
    wire.sendall(struct.pack(">i", len(request)) + request)
    head = b""
    while len(head) < _ANSWER_HEAD.size:
        part = wire.recv(_ANSWER_HEAD.size - len(head))
        if not part:
            return None
        head += part
    _, _, code = _ANSWER_HEAD.unpack(head)
    return int(code)


def _encrypted(plain: socket.socket, place: tuple[str, int]) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent that others must not see
    return context.wrap_socket(plain, server_hostname=place[0])
