"""The list of all options, for the loader's checks and for the documentation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, get_origin

from pydantic.fields import FieldInfo

from penstock.settings.secret import Secret
from penstock.settings.sections import Section, Settings

OptionPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    path: OptionPath
    annotation: Any
    default: Any
    default_text: str
    sentence: str
    kind: str

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_collection(self) -> bool:
        return get_origin(self.annotation) in {dict, list, tuple}

    @property
    def is_secret(self) -> bool:
        return "Secret" in str(self.annotation)


def _options(section: type[Section], path: OptionPath) -> Iterator[Option]:
    shown = section().model_dump(mode="json")
    schema = section.model_json_schema()["properties"]
    for name, field in section.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from _options(annotation, (*path, name))
        else:
            yield Option(
                path=(*path, name),
                annotation=annotation,
                default=field.default,
                default_text=_text(shown[name]),
                sentence=field.description or "",
                kind=_kind(field, schema[name]),
            )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if value not in ({}, []) else ("{}" if value == {} else "[]")


def _kind(field: FieldInfo, schema: Mapping[str, Any]) -> str:
    """The type in the words of the documentation."""
    if "Secret" in str(field.annotation):
        return "secret"
    choices = schema.get("enum")
    if choices:
        return " or ".join(f"`{choice}`" for choice in choices)
    examples = schema.get("examples")
    if examples:
        return f"like `{examples[0]}`"
    kinds = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "yes or no",
    }
    kind = schema.get("type")
    if kind is None:
        kind = next((one["type"] for one in schema.get("anyOf", []) if "type" in one), "value")
    return kinds.get(str(kind), {"object": "mapping", "array": "list"}.get(str(kind), str(kind)))


@cache
def known_options() -> Mapping[OptionPath, Option]:
    return {option.path: option for option in _options(Settings, ())}


@cache
def secret_options() -> frozenset[OptionPath]:
    return frozenset(path for path, option in known_options().items() if option.is_secret)


__all__ = ["Option", "OptionPath", "Secret", "known_options", "secret_options"]
