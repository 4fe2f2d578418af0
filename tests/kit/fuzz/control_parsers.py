"""Parsers of what travels between the parts: messages, states, records of who leads, batches."""

import base64
import json
import posixpath
import struct
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kit.controller.messages import EXAMPLES
from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from kit.fuzz.parser import Form, Parser
from penstock.cli.service import KINDS, _moment_ms, made_request
from penstock.committer.offers import batch_of, is_signed
from penstock.consumer.core.shutdown_record import begin_incarnation
from penstock.controller.core.saved_state import state_as_json
from penstock.controller.core.state import State
from penstock.controller.process.prefix_holder import Holder
from penstock.controller.process.saved_states import SavedStates
from penstock.errors import UsageError
from penstock.kafka_io.record_batches import batch_writers, bytes_and_records
from penstock.messages import Message, OfferedBatch, Refusal, decode, encode, group_named
from penstock.messages.codec import SchemaVersion
from penstock.messages.refusal import DETAIL_LENGTH_MAX
from penstock.messages.status_records import StatusAssembler, status_parts
from penstock.page.core.listing import BadQueryError, read_cursor
from penstock.state_directory import BrokenState, StateDirectory
from penstock.state_directory.state_file import _sum, decode_state, encode_state

OWNER = f"{CATALOGUE.lake.group}/controller"


def _record(message: Message, **version: SchemaVersion) -> bytes:
    """A record as one text: a line a header, an empty line, the value."""
    encoded = encode(message, group="penstock", **version)
    head = b"".join(name.encode() + b"=" + value + b"\n" for name, value in encoded.headers)
    return head + b"\n" + encoded.value


def _message(data: bytes) -> None:
    head, _, value = data.partition(b"\n\n")
    lines = [line.partition(b"=") for line in head.splitlines()]
    headers = [
        (name.decode(errors="replace"), raw if is_given else None) for name, is_given, raw in lines
    ]
    found = decode(value, headers, group="penstock", topic_role="controller", mailbox=0)
    if isinstance(found, Refusal):
        assert len(found.detail) <= DETAIL_LENGTH_MAX
        assert "\n" not in str(found), "a refusal is one line of a log"
        assert str(found).encode(), "and can be written"
    group_named(headers)
    anywhere = decode(value, headers)
    if isinstance(anywhere, Message):
        again = encode(anywhere)
        assert decode(again.value, again.headers) == anywhere
    if isinstance(anywhere, OfferedBatch):
        batch = batch_of(anywhere, "penstock")
        folder = f"data/penstock/{anywhere.consumer_id}-{anywhere.incarnation}/"
        assert batch.name.startswith(folder)
        for file in batch.files:
            assert posixpath.normpath(file.path) == file.path
            assert file.path.startswith(f"{batch.name}/")
        for move in batch.moves:
            assert move.application_id.startswith("penstock/")
            assert move.next_offset > (-1 if move.expected is None else move.expected)
        assert not is_signed(anywhere, b"another key", "g")


def _a_state() -> State:
    state = after(
        "settings deployment=kubernetes",
        *TWO_CONSUMERS,
        "request p: pause direction=down reason=sale",
        "request s: settings consumers_max=9",
        "request u: update",
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=20",
        "tick +500",
        "packed 1: orders-0; 2: orders-1 orders-2",
    ).state
    assert state is not None
    return state


def _with_checksum(body: bytes) -> bytes:
    """Whoever may write to the state's topic can add one."""
    head, _, old = encode_state(OWNER, {}).partition(b"\n")
    assert old
    checksum = _sum(OWNER, body)
    return head.rpartition(b":")[0] + b":" + checksum.encode() + b"\n" + body


class _NoLog:
    def warning(self, *_: object, **__: object) -> None:
        """What is ignored is said once for each input."""


def _saved_states() -> SavedStates:
    return SavedStates(
        CATALOGUE,
        StateDirectory(Path(tempfile.gettempdir()) / "never-opened", OWNER),
        _NoLog(),
        now_ms=lambda: 5_000,
        unix_ms=lambda: 90_000,
    )


def _remembered(data: bytes) -> None:
    """As the record of the state's topic; what is read can be written again."""
    states = _saved_states()
    found = states._read("topic", decode_state(OWNER, _with_checksum(data)))
    if found.state is not None:
        json.dumps(state_as_json(found.state))
        assert found.age_order >= (-1, 0) or found.save_number < 0


def _state_file(data: bytes) -> None:
    for owner in (OWNER, "consumer-3"):
        content = decode_state(owner, data)
        assert isinstance(content, dict | BrokenState)


def _shutdown_record(data: bytes) -> None:
    body = decode_state(OWNER, _with_checksum(data))
    stored: Mapping[str, Any] | None = None if isinstance(body, BrokenState) else body
    begin_incarnation(stored, is_broken=stored is None, now_ms=5_000)


def _holder(data: bytes) -> None:
    found = Holder.read(data)
    if found is not None:
        assert str(found).isprintable()
        assert found.epoch + found.since_unix_ms >= 0
        found.is_dead_here()


def _status(data: bytes) -> None:
    """A line of headers, then the content; both may be forged, and the content is compressed."""
    head, _, content = data.partition(b"\n")
    named = [one.partition(b"=") for one in head.split(b";")]
    headers = tuple((name.decode(errors="replace"), value) for name, _, value in named)
    for value in (zlib.compress(content), content):
        assembler = StatusAssembler("penstock")
        assembler.add(value, headers, 5_000)
        if assembler.newest is None:
            continue
        try:
            assert isinstance(assembler.newest.unpacked()["status"], dict)
        except ValueError:
            if value is not content:
                raise


def _batches(data: bytes) -> None:
    size, records = bytes_and_records(data)
    assert 0 <= size <= len(data)
    assert records >= 0
    assert len(batch_writers(data)) <= len(data)


def _request(data: bytes) -> None:
    kind, _, content = data.partition(b"\n")
    name = kind.decode(errors="replace")
    made_request(name if name in KINDS else "pause", content.decode(errors="surrogateescape"))


def _batch(offset: int, records: int) -> bytes:
    body = struct.pack(">ibIhiqqqhi", 0, 2, 0, 16, records - 1, 1, 2, 77, 0, 0) + b"x" * 50
    return struct.pack(">qi", offset, len(body)) + body


_CONTENT = {
    "state": state_as_json(_a_state()),
    "template": {"version": 3, "environment": {"APP_A": "x"}, "image": "penstock:3"},
    "former_template": {},
    "service_next_offset": 7,
    "save_number": 4,
    "saved_at": {"now_ms": 5, "unix_ms": 6},
}
CONTROL_PARSERS = (
    Parser(
        "message",
        _message,
        tuple(_record(one) for one in EXAMPLES)
        + tuple(_record(one, version=SchemaVersion(1, 9)) for one in EXAMPLES[:4]),
        Form.JSON_LINES,
        ("messages/codec.py",),
    ),
    Parser(
        "state-file",
        _state_file,
        (encode_state(OWNER, _CONTENT), encode_state("consumer-3", {"incarnation": 17})),
        Form.BYTES,
        ("state_directory/state_file.py",),
    ),
    Parser(
        "controller-state",
        _remembered,
        (json.dumps(_CONTENT).encode(),),
        Form.JSON_LINES,
        ("state_directory/state_file.py",),
    ),
    Parser(
        "shutdown-record",
        _shutdown_record,
        (b'{"state": "running", "incarnation": 17, "mailbox": {"penstock-query-0": 5}}',),
        Form.JSON_LINES,
        ("state_directory/state_file.py",),
    ),
    Parser(
        "holder",
        _holder,
        (Holder.of_this_process(CATALOGUE).record(CATALOGUE).value,),
        Form.JSON_LINES,
        ("controller/process/prefix_holder.py",),
    ),
    Parser(
        "status-record",
        _status,
        tuple(
            b";".join(name.encode() + b"=" + value for name, value in part.headers)
            + b'\n{"status": {"consumers": []}, "settings_in_force": null}'
            for part in status_parts("penstock", 7, 3, "{}")
        ),
        Form.JSON_LINES,
        ("messages/status_records.py",),
        (ValueError,),
    ),
    Parser(
        "page-cursor",
        lambda data: read_cursor(base64.urlsafe_b64encode(data).decode()),
        (b'[-0.5, "orders", 3]',),
        Form.JSON_LINES,
        ("page/core/listing.py",),
        (BadQueryError,),
    ),
    Parser(
        "record-batches",
        _batches,
        (_batch(0, 10) + _batch(10, 5),),
        Form.BYTES,
        ("kafka_io/record_batches.py",),
    ),
    Parser(
        "moment",
        lambda data: _moment_ms(data.decode(errors="surrogateescape")),
        (b"30m", b"2026-12-24T18:00", b"2026-12-24T18:00:00+14:00"),
        Form.BYTES,
        ("cli/service.py",),
        (UsageError,),
    ),
    Parser(
        "service-request",
        _request,
        (
            b'update-deployments\n{"transformations": {"orders": "mine:clean"}, "resources": {}}',
            b'update-deployments\n{"environment": {"APP_A": "x"}}',
            b'change-settings\n{"packing.capacity": "3MB/s", "changes": {}}',
            b'pause\n{"direction": "down", "until_unix_ms": 9000000000000, "reason": "sale"}',
            b"resume\n{}",
            b"drop-changes\n{}",
            b"pause\n@/dev/null",
        ),
        Form.JSON_LINES,
        ("cli/service.py",),
        (UsageError,),
    ),
)
