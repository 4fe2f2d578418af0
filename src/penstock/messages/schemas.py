"""The JSON Schema of every message, for readers in other languages.

It is generated from the models. `docs/development/messages/` holds the files, and a test checks
that they are up to date.
"""

import json
from typing import Any

from penstock.messages.catalogue import MESSAGE_TYPES
from penstock.messages.codec import SCHEMA_VERSION
from penstock.messages.fields import Message
from penstock.model.control_topic_names import ControlTopicNames


def schema_of(kind: type[Message]) -> dict[str, Any]:
    schema = kind.model_json_schema(mode="validation")
    names = ControlTopicNames("<prefix>")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:penstock:messages:{SCHEMA_VERSION.major}:{kind.__name__}",
        **schema,
        "x-schema-version": str(SCHEMA_VERSION),
        "x-topic": names.of_role(kind.topic_role),
        **({"x-also-on": [names.of_role(role) for role in kind.also_on]} if kind.also_on else {}),
        "x-headers": ["event_type", "schema_version", "group", *kind.header_fields],
    }


def schema_texts() -> dict[str, str]:
    """File name -> content, for every message."""
    return {
        f"{kind.__name__}.json": json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in MESSAGE_TYPES
    }
