"""Encodes and decodes messages: the only place that parses untrusted bytes.

`decode` never raises for bad input: it returns a message or a `Refusal`. Cheap checks come first:
size, headers, version, nesting, JSON without duplicate keys, then strict fields, and last whether
headers and body agree.

Versions are `major.minor`. A minor version may only add optional fields; it never changes, removes
or narrows one. So an older reader ignores unknown fields in a message with a newer minor version,
and refuses them otherwise; a newer reader uses defaults for fields that an older writer did not
send. Another major version is refused: see docs/development/protocol.md.

The header `group` names the group of the writer; a reader that has one refuses those of others.
Writers before version 1.3 send none: their messages are read, so that an upgrade stops no group.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from penstock.messages.catalogue import TYPE_BY_NAME
from penstock.messages.depth import is_deeper_than
from penstock.messages.fields import MESSAGE_BYTES_MAX, Message
from penstock.messages.refusal import DETAIL_LENGTH_MAX, Refusal, RefusalCode, RefusedError

DEPTH_MAX = 8
HEADER_BYTES_MAX = 256
HEADERS_MAX = 32


@dataclass(frozen=True, order=True, slots=True)
class SchemaVersion:
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


SCHEMA_VERSION: Final = SchemaVersion(1, 4)
_GROUP = re.compile(r"[A-Za-z0-9._-]{1,249}")
_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")

Headers = Iterable[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded message for the producer."""

    value: bytes
    headers: tuple[tuple[str, bytes], ...]


def encode(
    message: Message, *, group: str = "", version: SchemaVersion = SCHEMA_VERSION
) -> Encoded:
    """Encode a message of the group. Raises if it is too large: the caller should have split it."""
    value = message.model_dump_json(exclude_none=True).encode()
    if len(value) > MESSAGE_BYTES_MAX:
        raise ValueError(f"{message.event_type} of {len(value)} bytes should have been split")
    copied = ((name, str(getattr(message, name)).encode()) for name in message.header_fields)
    headers = (
        ("event_type", message.event_type.encode()),
        ("schema_version", str(version).encode()),
        *((("group", group.encode()),) if group else ()),
        *copied,
    )
    return Encoded(value, headers)


def decode(
    value: bytes | None,
    headers: Headers | None,
    *,
    group: str = "",
    topic_role: str | None = None,
    mailbox: int | None = None,
    reader_version: SchemaVersion = SCHEMA_VERSION,
    types: Mapping[str, type[Message]] = TYPE_BY_NAME,
) -> Message | Refusal:
    """Decode a message, or return why it is refused.

    If given, `group`, `topic_role` and `mailbox` must match the message. Tests set
    `reader_version` and `types` to act as an older or a newer reader.
    """
    given = tuple(headers or ())
    try:
        message = _read(value, given, group, reader_version, types)
        _check_place(message, topic_role, mailbox)
    except RefusedError as refused:
        named = [raw for name, raw in given if name == "event_type" and raw is not None]
        known = [kind for kind in types if kind.encode() in named]
        size_bytes = 0 if value is None else len(value)
        return Refusal(refused.code, refused.detail, size_bytes, known[0] if known else None)
    return message


def _read(
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    group: str,
    reader_version: SchemaVersion,
    types: Mapping[str, type[Message]],
) -> Message:
    if not value:
        raise RefusedError(RefusalCode.EMPTY, "no value")
    if len(value) > MESSAGE_BYTES_MAX:
        raise RefusedError(RefusalCode.TOO_LARGE, f"more than {MESSAGE_BYTES_MAX} bytes")
    texts = _read_headers(headers)
    _check_group(texts, group)
    version = _read_version(texts, reader_version)
    kind = types.get(texts["event_type"])
    if kind is None:
        raise RefusedError(RefusalCode.UNKNOWN_TYPE, f"unknown type: {texts['event_type']!r}")
    message = _read_body(kind, value, tolerant=version > reader_version)
    _check_headers_agree(message, texts)
    return message


def _read_headers(headers: tuple[tuple[str, bytes | None], ...]) -> dict[str, str]:
    if len(headers) > HEADERS_MAX:
        raise RefusedError(RefusalCode.HEADER_MALFORMED, f"more than {HEADERS_MAX} headers")
    texts: dict[str, str] = {}
    for name, raw in headers:
        if raw is None or len(raw) > HEADER_BYTES_MAX or not raw.isascii():
            raise RefusedError(RefusalCode.HEADER_MALFORMED, f"header {name[:40]!r} is not text")
        if name in texts:
            raise RefusedError(RefusalCode.HEADER_MALFORMED, f"header {name[:40]!r} twice")
        texts[name] = raw.decode("ascii")
    for needed in ("event_type", "schema_version"):
        if needed not in texts:
            raise RefusedError(RefusalCode.HEADER_MISSING, f"no {needed} header")
    return texts


def _check_group(texts: Mapping[str, str], group: str) -> None:
    named = texts.get("group")
    if named is None:
        return
    if _GROUP.fullmatch(named) is None:
        raise RefusedError(RefusalCode.HEADER_MALFORMED, f"not a group: {named[:40]!r}")
    if group and named != group:
        raise RefusedError(
            RefusalCode.OTHER_GROUP, f"of group {named}; this is group {group} (lake.group)"
        )


def group_named(headers: Headers | None) -> str:
    """The group that the headers name; empty if they name none that could be one."""
    raw = dict(headers or ()).get("group") or b""
    text = raw.decode("ascii", errors="replace")
    return text if _GROUP.fullmatch(text) else ""


def _read_version(texts: Mapping[str, str], reader_version: SchemaVersion) -> SchemaVersion:
    match = _VERSION.fullmatch(texts["schema_version"])
    if match is None:
        raise RefusedError(
            RefusalCode.HEADER_MALFORMED, f"not a version: {texts['schema_version'][:40]!r}"
        )
    version = SchemaVersion(int(match[1]), int(match[2]))
    if version.major > reader_version.major:
        raise RefusedError(
            RefusalCode.FUTURE_VERSION, f"version {version}; this reader supports {reader_version}"
        )
    if version.major < reader_version.major:
        raise RefusedError(
            RefusalCode.PAST_VERSION, f"version {version}; this reader supports {reader_version}"
        )
    return version


def _read_body(kind: type[Message], value: bytes, *, tolerant: bool) -> Message:
    parsed = _parse(value)
    try:
        return kind.model_validate_json(value)
    except ValidationError as error:
        unknown = [e["loc"] for e in error.errors() if e["type"] == "extra_forbidden"]
        if not tolerant or len(unknown) != error.error_count():
            raise RefusedError(RefusalCode.FIELDS_INVALID, _describe(error)) from error
    for location in unknown:
        _remove(parsed, location)
    try:
        return kind.model_validate_json(json.dumps(parsed))
    except ValidationError as error:
        # Checks across fields run only after all fields are valid.
        raise RefusedError(RefusalCode.FIELDS_INVALID, _describe(error)) from error


def _parse(value: bytes) -> Any:
    """Parse the text as JSON; refuses duplicate keys and deep nesting."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(RefusalCode.NOT_UTF8, f"byte {error.start}") from error
    if is_deeper_than(DEPTH_MAX, value):
        raise RefusedError(RefusalCode.TOO_DEEP, f"nested deeper than {DEPTH_MAX}")
    try:
        return json.loads(text, object_pairs_hook=_every_key_once, parse_constant=_no_constant)
    except ValueError as error:
        # Also raised for an integer of more digits than Python converts.
        raise RefusedError(RefusalCode.NOT_JSON, str(error)) from error


def _every_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RefusedError(RefusalCode.DUPLICATE_KEY, "the same key twice in one object")
    return found


def _no_constant(name: str) -> None:
    raise RefusedError(RefusalCode.NOT_JSON, f"{name} is not JSON")


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step)[:40] for step in first["loc"]) or "message"
    more = error.error_count() - 1
    text = f"{place!r}: {first['msg']}" + (f", and {more} more" if more else "")
    return text[:DETAIL_LENGTH_MAX]


def _remove(parsed: Any, location: tuple[int | str, ...]) -> None:
    for step in location[:-1]:
        parsed = parsed[step]
    del parsed[location[-1]]


def _check_headers_agree(message: Message, texts: Mapping[str, str]) -> None:
    for name in message.header_fields:
        if name not in texts:
            raise RefusedError(RefusalCode.HEADER_MISSING, f"no {name} header")
        if texts[name] != str(getattr(message, name)):
            raise RefusedError(
                RefusalCode.HEADER_DISAGREES, f"{name} differs between header and body"
            )


def _check_place(message: Message, topic_role: str | None, mailbox: int | None) -> None:
    if topic_role is not None and topic_role not in {message.topic_role, *message.also_on}:
        raise RefusedError(RefusalCode.WRONG_TOPIC, f"belongs on {message.topic_role}")
    if mailbox is not None and mailbox != message.mailbox:
        raise RefusedError(RefusalCode.WRONG_MAILBOX, f"belongs in partition {message.mailbox}")
