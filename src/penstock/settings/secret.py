"""A value that never prints itself.

Its text form is `***` wherever it lands: logs, errors, dumps, tables. It cannot be pickled, and two
secrets are only equal as objects, so that no log of a comparison gives one away. Whoever hands it
to a library calls `reveal`, which is easy to search for.
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
        raise TypeError("a secret is not written down")

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(
            cls, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: Any) -> dict[str, Any]:
        return {"type": "string", "writeOnly": True}
