"""The base of all sections: frozen, unknown names refused, a sentence for every option."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=False, use_attribute_docstrings=False
    )


def option(default: Any, sentence: str, **constraints: Any) -> Any:
    """An option with its default, its sentence and pydantic constraints."""
    return Field(default=default, description=sentence, **constraints)


def checked_patterns(value: list[str]) -> list[str]:
    """Regular expressions as they are; ValueError for what is none."""
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return value


def is_among(text: str, patterns: list[str]) -> bool:
    """Whether one of the patterns is for this text, as a whole."""
    return any(re.fullmatch(pattern, text) for pattern in patterns)
