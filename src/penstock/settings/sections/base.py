"""What all sections share: frozen, strict about names, one sentence for every option."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=False, use_attribute_docstrings=False
    )


def option(default: Any, sentence: str, **constraints: Any) -> Any:
    """A setting with its default and the sentence that explains it; constraints are pydantic's."""
    return Field(default=default, description=sentence, **constraints)
