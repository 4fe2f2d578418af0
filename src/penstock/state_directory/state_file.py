"""The format of a state file: a header line with a checksum, and JSON. Pure.

    penstock-state 1 consumer-3 sha256:...
    {"incarnation": 17, ...}

A file that is truncated, damaged, or written by another owner or a later version is refused with a
reason.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.model.json_text import read_json

VERSION = 1
STATE_BYTES_MAX = 8 * 2**20
_MAGIC = "penstock-state"


@dataclass(frozen=True, slots=True)
class BrokenState:
    """The file exists but cannot be used."""

    why: str


def encode_state(owner: str, content: Mapping[str, Any]) -> bytes:
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    return f"{_MAGIC} {VERSION} {owner} sha256:{_sum(owner, body)}\n".encode() + body + b"\n"


def decode_state(owner: str, data: bytes) -> dict[str, Any] | BrokenState:
    """The content that `encode_state` wrote, or why it cannot be read."""
    if len(data) > STATE_BYTES_MAX:
        return BrokenState(f"it is larger than {STATE_BYTES_MAX} bytes")
    head, newline, body = data.partition(b"\n")
    explanation = head.decode("utf-8", errors="replace").split(" ")
    if not newline or len(explanation) != 4 or explanation[0] != _MAGIC:
        return BrokenState("it is not a state file")
    if explanation[1] != str(VERSION):
        return BrokenState(f"it has version {explanation[1][:20]!r}, this program writes {VERSION}")
    if explanation[2] != owner:
        return BrokenState(f"it belongs to {explanation[2][:80]!r}, not to {owner!r}")
    body = body.removesuffix(b"\n")
    if explanation[3] != f"sha256:{_sum(owner, body)}":
        return BrokenState("its checksum does not match its content")
    return _content(body)


def _content(body: bytes) -> dict[str, Any] | BrokenState:
    """Whoever can write the file can add a checksum."""
    try:
        content = read_json(body)
    except ValueError:
        return BrokenState("it is not JSON")
    return content if isinstance(content, dict) else BrokenState("its content is not a mapping")


def _sum(owner: str, body: bytes) -> str:
    return hashlib.sha256(f"{VERSION} {owner}\n".encode() + body).hexdigest()
