"""A value that is never printed.

Its text form is `***` in logs, errors, dumps and tables. It cannot be pickled, and two secrets are
equal only if they are the same object, so that no comparison leaks one. `reveal` returns the text,
for libraries that need it.
"""

from typing import Any, NoReturn

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

MASK = "***"


class Secret:
    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return MASK

    def __format__(self, _: str) -> str:
        return MASK

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(
            cls, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: Any) -> dict[str, Any]:
        return {"type": "string", "writeOnly": True}
