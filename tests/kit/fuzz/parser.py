"""A parser of foreign bytes, and the law that all of them keep.

The law: whatever the bytes are, a parser returns a value or raises the refusal that it documents,
in bounded time. Any other exception is a crash.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

# Of processor time: a busy machine does not count. No input is larger than a megabyte.
PARSE_S_MAX = 5.0


class Form(Enum):
    """What the bytes are like, so that a mutation keeps most of it right."""

    BYTES = "bytes"
    # Of each line that is JSON, one value is exchanged. Other lines are heads.
    JSON_LINES = "JSON lines"
    YAML = "YAML"


@dataclass(frozen=True, slots=True)
class Parser:
    """`modules` are the files below src/penstock in which it takes the bytes apart."""

    name: str
    parse: Callable[[bytes], object]
    examples: tuple[bytes, ...]
    form: Form
    modules: tuple[str, ...]
    refusals: tuple[type[BaseException], ...] = ()
    # Whether native code reads the bytes: it may end the process, so the runner keeps each input.
    is_native: bool = False


class BrokenLawError(AssertionError):
    """A parser raised something else than its refusal, or took too long."""


def require_law(parser: Parser, data: bytes) -> None:
    begun_s = time.process_time()
    try:
        parser.parse(data)
    except parser.refusals:
        pass
    except Exception as error:
        raise BrokenLawError(f"{parser.name}: {type(error).__name__}: {error!s:.300}") from error
    took_s = time.process_time() - begun_s
    if took_s > PARSE_S_MAX:
        raise BrokenLawError(f"{parser.name}: {took_s:.1f} s of processor time")
