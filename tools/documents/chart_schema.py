"""Generates the part of the chart's values schema that describes Penstock's settings.

With it, Helm refuses a misspelt or misplaced setting before it creates anything. Secrets are not
part of it: in the chart they come from a Secret, so a password among the settings is refused as an
unknown name.
"""

import json
from collections.abc import Iterable
from typing import Any

from penstock.settings.sections import Settings
from penstock.settings.sections.base import (
    END_COMES_AFTER,
    ENDS_OF_SECRET_NAMES,
    NAMES_OF_PLACES,
    PARTS_OF_SECRET_NAMES,
    SEPARATOR,
)
from penstock.settings.sections.kafka import CLIENT_PROPERTIES_ALLOWED
from penstock.settings.tree import secret_options

_LEFT_OUT = ("title", "default", "examples")
# Options whose values Penstock converts to text.
_ANY_SCALAR = {"type": ["string", "number", "boolean"]}
_TEXTS_OF_ANYTHING = {("kafka", "properties"), ("spark", "options")}
# Mappings with free names: names that suggest a secret are refused, as a ConfigMap is not secret.
_FREE_NAMES = {("spark", "options"), ("lake", "storage_options")}


def settings_schema() -> dict[str, Any]:
    """The schema of `settings`, without references."""
    whole = Settings.model_json_schema(mode="validation")
    inlined: dict[str, Any] = _without_references(whole, whole["$defs"])
    inlined.pop("$defs")
    for path in sorted(secret_options()):
        section = inlined["properties"][path[0]]["properties"]
        sentence = section.pop(path[1])["description"]
        section[f"{path[1]}_file"] = {"type": "string", "description": sentence}
    for section, option in sorted(_TEXTS_OF_ANYTHING):
        inlined["properties"][section]["properties"][option]["additionalProperties"] = _ANY_SCALAR
    last_word = f"{END_COMES_AFTER}({_any_of(ENDS_OF_SECRET_NAMES)})$"
    for section, option in sorted(_FREE_NAMES):
        inlined["properties"][section]["properties"][option]["propertyNames"] = {
            "anyOf": [
                {"not": {"pattern": f"{_any_of(PARTS_OF_SECRET_NAMES)}|{last_word}"}},
                {"pattern": f"({_any_of(NAMES_OF_PLACES)})$"},
            ]
        }
    inlined["properties"]["kafka"]["properties"]["properties"]["propertyNames"] = {
        "enum": sorted(CLIENT_PROPERTIES_ALLOWED)
    }
    return inlined


def _any_of(parts: Iterable[str]) -> str:
    return "|".join(_in_any_case(part) for part in parts)


def _in_any_case(part: str) -> str:
    """A pattern that ignores case without flags, which not every validator supports."""
    words = (
        "".join(f"[{one.upper()}{one}]" if one.isalpha() else f"[{one}]" for one in word)
        for word in part.split()
    )
    return SEPARATOR.join(words)


def _without_references(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_without_references(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _without_references(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {
        name: _options(value, definitions)
        if name == "properties"
        else _without_references(value, definitions)
        for name, value in schema.items()
        if name not in _LEFT_OUT
    }


def _options(properties: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Options by name; a name may equal a keyword of the schema."""
    return {name: _without_references(one, definitions) for name, one in properties.items()}


def with_settings(text: str) -> str:
    """The values schema with its generated part replaced."""
    schema = json.loads(text)
    schema["$defs"]["settings"] = settings_schema()
    return json.dumps(schema, indent=2) + "\n"
