"""The codec decodes what it encoded, and refuses the rest with a reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.controller.messages import EXAMPLES, LARGEST
from penstock.messages import (
    MESSAGE_BYTES_MAX,
    ControllerHeartbeat,
    FromConsumer,
    Message,
    Refusal,
    RefusalCode,
    StateQuery,
    StateQueryResponse,
    StopConsumingEvent,
    WriteSpeedMeasurement,
    decode,
    encode,
    group_named,
)
from penstock.messages.catalogue import MESSAGE_TYPES
from penstock.messages.depth import is_deeper_than

QUERY = encode(StateQuery(consumer_id=3, controller_epoch=7, plan_number=1, query_number=1))


def refused(value: bytes | None, headers: Any = QUERY.headers, **options: Any) -> RefusalCode:
    outcome = decode(value, headers, **options)
    assert isinstance(outcome, Refusal)
    assert str(outcome.code) in str(outcome)
    assert outcome.size_bytes == len(value or b"")
    return outcome.code


def query_with(**changes: Any) -> bytes:
    body = json.loads(QUERY.value) | changes
    return json.dumps({k: v for k, v in body.items() if v is not ...}).encode()


def test_every_kind_has_an_example() -> None:
    """Every type of message has an example for the tests below."""
    assert [type(message) for message in EXAMPLES] == list(MESSAGE_TYPES)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: m.event_type)
def test_what_is_written_is_read_again(message: Message) -> None:
    """An encoded message decodes to an equal one in its mailbox."""
    encoded = encode(message)
    read = decode(
        encoded.value, encoded.headers, topic_role=message.topic_role, mailbox=message.mailbox
    )
    assert read == message
    assert b"null" not in encoded.value, "unknown values are absent"
    assert dict(encoded.headers)["event_type"] == message.event_type.encode()


@pytest.mark.parametrize("message", LARGEST, ids=lambda m: m.event_type)
def test_the_largest_list_fits_whatever_the_names_are(message: Message) -> None:
    """The longest list with the longest names stays under the broker's limit."""
    encoded = encode(message)
    assert decode(encoded.value, encoded.headers) == message


def test_a_list_that_was_not_split_is_our_own_mistake() -> None:
    """Encoding a message that is too large raises an error."""
    largest = next(m for m in LARGEST if isinstance(m, StopConsumingEvent))
    with pytest.raises(ValueError, match="should have been split"):
        encode(largest.model_copy(update={"partitions": largest.partitions * 2}))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, RefusalCode.EMPTY),
        (b"", RefusalCode.EMPTY),
        (b" " * (MESSAGE_BYTES_MAX + 1), RefusalCode.TOO_LARGE),
        (b"\xff\xfe", RefusalCode.NOT_UTF8),
        (b"{", RefusalCode.NOT_JSON),
        (b"hello", RefusalCode.NOT_JSON),
        (b'{"consumer_id": NaN}', RefusalCode.NOT_JSON),
        (b'{"consumer_id": 1' + b"0" * 5_000 + b"}", RefusalCode.NOT_JSON),
        (b'{"consumer_id": 1, "consumer_id": 1}', RefusalCode.DUPLICATE_KEY),
        (b"[" * 100_000, RefusalCode.TOO_DEEP),
        (b'{"a":' * 9 + b"1" + b"}" * 9, RefusalCode.TOO_DEEP),
        (b'"\\u0000"', RefusalCode.FIELDS_INVALID),
        (b"[]", RefusalCode.FIELDS_INVALID),
        (query_with(consumer_id=0), RefusalCode.FIELDS_INVALID),
        (query_with(consumer_id=-1), RefusalCode.FIELDS_INVALID),
        (query_with(consumer_id="3"), RefusalCode.FIELDS_INVALID),
        (query_with(consumer_id=3.0), RefusalCode.FIELDS_INVALID),
        (query_with(consumer_id=True), RefusalCode.FIELDS_INVALID),
        (query_with(query_number=10**15), RefusalCode.FIELDS_INVALID),
        (query_with(query_number=...), RefusalCode.FIELDS_INVALID),
        (query_with(extra=1), RefusalCode.FIELDS_INVALID),
        (query_with(consumer_id=4), RefusalCode.HEADER_DISAGREES),
    ],
)
def test_malformed_bytes_are_refused_by_name(value: bytes | None, code: RefusalCode) -> None:
    """Each kind of malformed value has its own code, and none raises."""
    assert refused(value) == code


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        (None, RefusalCode.HEADER_MISSING),
        ([], RefusalCode.HEADER_MISSING),
        ([("event_type", b"StateQuery")], RefusalCode.HEADER_MISSING),
        (QUERY.headers[:2], RefusalCode.HEADER_MISSING),
        ([*QUERY.headers, ("event_type", b"StateQuery")], RefusalCode.HEADER_MALFORMED),
        ([*QUERY.headers, ("x", None)], RefusalCode.HEADER_MALFORMED),
        ([*QUERY.headers, ("x", b"y" * 257)], RefusalCode.HEADER_MALFORMED),
        ([*QUERY.headers, ("x", "é".encode())], RefusalCode.HEADER_MALFORMED),
        ([(f"h{n}", b"") for n in range(33)], RefusalCode.HEADER_MALFORMED),
        ([("event_type", b"StateQuery"), ("schema_version", b"1")], RefusalCode.HEADER_MALFORMED),
        ([("event_type", b"Reboot"), ("schema_version", b"1.0")], RefusalCode.UNKNOWN_TYPE),
    ],
)
def test_malformed_headers_are_refused_by_name(headers: Any, code: RefusalCode) -> None:
    """Each kind of malformed header has its own code."""
    assert refused(QUERY.value, headers) == code


def test_headers_of_other_programs_are_ignored() -> None:
    """Unknown headers, such as those of tracing tools, are ignored."""
    outcome = decode(QUERY.value, [*QUERY.headers, ("traceparent", b"00-abc")])
    assert isinstance(outcome, StateQuery)


def test_a_refusal_names_the_kind_only_when_it_is_known() -> None:
    """A refusal names only known types, so that counters stay bounded."""
    known = decode(b"{}", QUERY.headers)
    assert isinstance(known, Refusal)
    assert known.event_type == "StateQuery"
    unknown = decode(b"{}", [("event_type", b"<script>"), ("schema_version", b"1.0")])
    assert isinstance(unknown, Refusal)
    assert unknown.event_type is None


def test_a_message_in_the_wrong_place_is_refused() -> None:
    """A query on another topic or in another mailbox is refused."""
    assert refused(QUERY.value, topic_role="controller") == RefusalCode.WRONG_TOPIC
    assert refused(QUERY.value, topic_role="query", mailbox=4) == RefusalCode.WRONG_MAILBOX


def test_consumers_and_the_controller_write_to_topics_of_their_own() -> None:
    """No command counts on the consumers' topic; what a former release's consumers write does."""
    places = {
        type(message): {role for role in ("consumer", "controller") if _is_read(message, role)}
        for message in EXAMPLES
    }
    for kind, found in places.items():
        if issubclass(kind, FromConsumer) or kind is ControllerHeartbeat:
            assert found == {"consumer", "controller"}
        else:
            assert "consumer" not in found


def _is_read(message: Message, role: str) -> bool:
    encoded = encode(message)
    return decode(encoded.value, encoded.headers, topic_role=role) == message


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../x", "<b>", "x" * 250, "a\n", "ä"])
def test_names_outside_kafkas_alphabet_never_pass(topic: str) -> None:
    """A topic name outside Kafka's alphabet is refused."""
    headers = (("event_type", b"StopConsumingEvent"), ("schema_version", b"1.0"))
    row = {"topic": topic, "partition": 0, "epoch": "1.1"}
    body = {"consumer_id": 1, "incarnation": 1, "controller_epoch": 1, "plan_number": 1}
    assert refused(json.dumps(body | {"partitions": [row]}).encode(), headers) == (
        RefusalCode.FIELDS_INVALID
    )


@pytest.mark.parametrize("topic", ["...", "..a", ".a", "a.", "a-b_c.D9", "x" * 249])
def test_names_that_kafka_accepts_pass(topic: str) -> None:
    """Every name that Kafka accepts is accepted; `.` and `..` are not."""
    row = {"topic": topic, "partition": 0}
    body = {
        "monitor_incarnation": 1,
        "sequence": 1,
        "published_at_unix_ms": 1,
        "age_ms": 0,
        "window_ms": 0,
        "partitions": [row],
    }
    read = WriteSpeedMeasurement.model_validate_json(json.dumps(body))
    assert str(read.partitions[0].topic_partition) == f"{topic}-0"


@pytest.mark.parametrize("speed", ["-1", "1e400", "NaN", "Infinity", '"1"', "2e18"])
def test_speeds_that_are_no_speeds_never_pass(speed: str) -> None:
    """NaN, negative and infinite speeds are refused."""
    example = next(m for m in EXAMPLES if isinstance(m, WriteSpeedMeasurement))
    encoded = encode(example)
    poisoned = encoded.value.replace(b"1000000.5", speed.encode())
    assert poisoned != encoded.value
    assert refused(poisoned, encoded.headers) in {RefusalCode.FIELDS_INVALID, RefusalCode.NOT_JSON}


def test_a_part_beyond_its_parts_is_refused() -> None:
    """Part 3 of 2 is refused."""
    for kind in (WriteSpeedMeasurement, StateQueryResponse):
        encoded = encode(next(m for m in EXAMPLES if isinstance(m, kind)))
        value = encoded.value.replace(b'"part":1', b'"part":3')
        headers = [(n, b"3" if n == "part" else v) for n, v in encoded.headers]
        assert refused(value, headers) == RefusalCode.FIELDS_INVALID


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise(value: bytes) -> None:
    """Any bytes give a message or a refusal, never an exception."""
    decode(value, QUERY.headers)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@given(JSON_VALUES, st.sampled_from(EXAMPLES), st.data())
def test_a_field_replaced_by_anything_never_raises(
    poison: Any, message: Message, data: st.DataObject
) -> None:
    """JSON with one replaced value gives a message or a refusal."""
    encoded = encode(message)
    body = json.loads(encoded.value)
    body[data.draw(st.sampled_from(sorted(body)))] = poison
    outcome = decode(json.dumps(body).encode(), encoded.headers)
    assert isinstance(outcome, (Message, Refusal))


@given(JSON_VALUES, st.integers(0, 6))
def test_the_quick_look_at_nesting_is_exact(value: Any, limit: int) -> None:
    """The fast check agrees with the exact depth."""

    def depth(inner: Any) -> int:
        if isinstance(inner, list):
            return 1 + max((depth(item) for item in inner), default=0)
        if isinstance(inner, dict):
            return 1 + max((depth(item) for item in inner.values()), default=0)
        return 0

    assert is_deeper_than(limit, json.dumps(value).encode()) == (depth(value) > limit)


def test_brackets_in_strings_are_no_nesting() -> None:
    """Brackets and quotes inside strings do not count as nesting."""
    assert not is_deeper_than(1, b'["[[[{{{", "\\"[[[["]')
    assert is_deeper_than(1, b'["]", [1]]')


def test_a_list_in_an_object_is_two_levels() -> None:
    """Both kinds of brackets count: a text could nest twice as deep as is allowed."""
    assert is_deeper_than(1, b'{"": []}')
    assert is_deeper_than(8, b'{"a":[' * 5 + b"]}" * 5)
    assert not is_deeper_than(8, b'{"a":[' * 4 + b"]}" * 4)
    assert not is_deeper_than(2, b'[{}, [], {"a": 1}]')


def test_a_message_of_another_group_is_refused() -> None:
    """It names its group in a header; the reader says whose it is."""
    query = StateQuery(consumer_id=3, controller_epoch=7, plan_number=1, query_number=1)
    encoded = encode(query, group="orders")
    assert dict(encoded.headers)["group"] == b"orders"
    assert decode(encoded.value, encoded.headers, group="orders") == query
    refusal = decode(encoded.value, encoded.headers, group="payments")
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.event_type) == (RefusalCode.OTHER_GROUP, "StateQuery")
    assert refusal.detail == "of group orders; this is group payments (lake.group)"
    assert decode(encoded.value, encoded.headers) == query, "who only looks on reads all groups"


@pytest.mark.parametrize("other", ["Orders", "orders-", "order", "orders.", "0rders"])
def test_a_group_with_nearly_the_same_name_is_another_one(other: str) -> None:
    """Names differ by case too, as topics do."""
    query = StateQuery(consumer_id=3, controller_epoch=7, plan_number=1, query_number=1)
    encoded = encode(query, group=other)
    refusal = decode(encoded.value, encoded.headers, group="orders")
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.OTHER_GROUP


def test_a_message_without_a_group_is_of_an_older_release_and_is_read() -> None:
    """An upgrade does not stop a group whose other half is not upgraded yet."""
    assert "group" not in dict(QUERY.headers)
    assert isinstance(decode(QUERY.value, QUERY.headers, group="orders"), StateQuery)


@pytest.mark.parametrize("name", [b"", b"two words", b"line\nbreak", b"x" * 250])
def test_what_cannot_be_a_group_is_refused(name: bytes) -> None:
    """No line of a log can be forged with it."""
    headers = (*QUERY.headers, ("group", name))
    assert refused(QUERY.value, headers) is RefusalCode.HEADER_MALFORMED
    assert group_named(headers) == ""


def test_the_group_can_be_read_without_the_message() -> None:
    """Whoever only wants to know who writes needs no more than the headers."""
    assert group_named(encode(EXAMPLES[0], group="orders").headers) == "orders"
    assert group_named(None) == ""
