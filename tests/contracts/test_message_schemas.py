"""The published schemas match what is sent."""

import json

import pytest
from jsonschema import Draft202012Validator

from kit.controller.messages import EXAMPLES, LARGEST
from kit.generated_files import ROOT
from penstock.messages import Message, encode
from penstock.messages.catalogue import TYPE_BY_NAME
from penstock.messages.schemas import schema_of, schema_texts

DIRECTORY = ROOT / "docs" / "development" / "messages"


def test_no_schema_is_left_over() -> None:
    """docs/development/messages has no schema of a removed message."""
    assert {path.name for path in DIRECTORY.glob("*.json")} == set(schema_texts())


@pytest.mark.parametrize("message", [*EXAMPLES, *LARGEST], ids=lambda m: m.event_type)
def test_what_is_sent_fits_its_schema(message: Message) -> None:
    """Every encoded message is valid under its schema."""
    schema = schema_of(TYPE_BY_NAME[message.event_type])
    Draft202012Validator.check_schema(schema)
    body = json.loads(encode(message).value)
    if "partitions" in body:
        body["partitions"] = body["partitions"][:5]
    assert list(Draft202012Validator(schema).iter_errors(body)) == []
