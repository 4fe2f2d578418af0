"""The base of all sections: frozen, unknown names refused, a sentence for every option."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=False, use_attribute_docstrings=False
    )


def option(default: Any, sentence: str, **constraints: Any) -> Any:
    """An option with its default, its sentence and pydantic constraints."""
    return Field(default=default, description=sentence, **constraints)
