"""Rolling upgrades: an older reader with a newer writer, and the other way round."""

import json

import pytest

from penstock.messages import (
    Message,
    Refusal,
    RefusalCode,
    SchemaVersion,
    StartConsumingCommand,
    StateQuery,
    decode,
    encode,
)
from penstock.messages.catalogue import TYPE_BY_NAME
from penstock.messages.commands import PartitionToStart

OLD, NEW, NEXT_MAJOR = SchemaVersion(1, 0), SchemaVersion(1, 1), SchemaVersion(2, 0)


class NewerRow(PartitionToStart):
    """A row of version 1.1, which adds a field that may be absent."""

    priority: int | None = None


class NewerStart(StartConsumingCommand):
    """The command in a version 1.1."""

    partitions: tuple[NewerRow, ...]
    deadline_ms: int | None = None


NEWER_TYPES: dict[str, type[Message]] = {**TYPE_BY_NAME, "StartConsumingCommand": NewerStart}
NEWER = NewerStart(
    consumer_id=1,
    incarnation=1,
    controller_epoch=1,
    plan_number=1,
    partitions=(
        NewerRow(topic="orders", partition=0, epoch="1.1", priority=3),
        NewerRow(topic="orders", partition=1, epoch="1.2"),
    ),
    deadline_ms=500,
)


def renamed(message: NewerStart, version: SchemaVersion) -> tuple[bytes, list[tuple[str, bytes]]]:
    encoded = encode(message, version=version)
    headers = [
        (n, b"StartConsumingCommand" if n == "event_type" else v) for n, v in encoded.headers
    ]
    return encoded.value, headers


def test_an_older_reader_ignores_what_a_newer_writer_added() -> None:
    """Unknown fields of a later minor version are ignored at every depth."""
    read = decode(*renamed(NEWER, NEW), reader_version=OLD)
    assert type(read) is StartConsumingCommand
    assert [row.epoch for row in read.partitions] == ["1.1", "1.2"]
    assert not hasattr(read, "deadline_ms")


def test_an_unknown_field_in_a_message_of_our_own_version_is_refused() -> None:
    """An unknown field in a message of our own version is refused."""
    read = decode(*renamed(NEWER, OLD), reader_version=OLD)
    assert isinstance(read, Refusal)
    assert read.code == RefusalCode.FIELDS_INVALID


def test_a_newer_reader_uses_defaults_for_missing_fields() -> None:
    """A newer reader uses the default of a field that an older writer did not send."""
    old = StartConsumingCommand(
        consumer_id=1,
        incarnation=1,
        controller_epoch=1,
        plan_number=1,
        partitions=(PartitionToStart(topic="orders", partition=0, epoch="1.1"),),
    )
    encoded = encode(old, version=OLD)
    read = decode(encoded.value, encoded.headers, reader_version=NEW, types=NEWER_TYPES)
    assert isinstance(read, NewerStart)
    assert read.deadline_ms is None


def test_a_newer_message_with_wrong_known_fields_is_refused() -> None:
    """A newer message with a wrong value or a missing field is refused."""
    value, headers = renamed(NEWER, NEW)
    changes: list[dict[str, object]] = [{"plan_number": 0}, {"partitions": []}]
    for change in changes:
        body = json.loads(value) | change
        read = decode(json.dumps(body).encode(), headers, reader_version=OLD)
        assert isinstance(read, Refusal)
        assert read.code == RefusalCode.FIELDS_INVALID


def test_checks_across_fields_hold_for_newer_messages_too() -> None:
    """Checks across fields also apply to a newer message."""
    body = {
        "consumer_id": 1,
        "incarnation": 1,
        "sequence": 1,
        "controller_epoch": 1,
        "plan_number": 1,
        "query_controller_epoch": 1,
        "query_number": 1,
        "part": 3,
        "parts": 2,
        "added": 1,
    }
    headers = [("event_type", b"StateQueryResponse"), ("schema_version", b"1.1")]
    read = decode(json.dumps(body).encode(), headers, reader_version=OLD)
    assert isinstance(read, Refusal)
    assert read.code == RefusalCode.FIELDS_INVALID


@pytest.mark.parametrize(
    ("written", "known", "code"),
    [
        (NEXT_MAJOR, OLD, RefusalCode.FUTURE_VERSION),
        (OLD, NEXT_MAJOR, RefusalCode.PAST_VERSION),
    ],
)
def test_another_major_version_is_refused_loudly(
    written: SchemaVersion, known: SchemaVersion, code: RefusalCode
) -> None:
    """Another major version has its own refusal code, with both versions."""
    encoded = encode(
        StateQuery(consumer_id=1, controller_epoch=1, plan_number=1, query_number=1),
        version=written,
    )
    read = decode(encoded.value, encoded.headers, reader_version=known)
    assert isinstance(read, Refusal)
    assert read.code == code
    assert str(written) in read.detail
    assert str(known) in read.detail
