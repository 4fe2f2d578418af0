"""Reads JSON that somebody else wrote: whatever is wrong with it is a ValueError.

Python's own reader raises other errors for deep nesting, and takes what JSON does not have: NaN,
infinite numbers, and integers of any length, on which later arithmetic fails.
"""

import json
from math import isfinite
from typing import Any

# Of a 64-bit number with its sign, and one more.
_DIGITS_MAX = 21


def read_json(text: str | bytes) -> Any:
    try:
        return json.loads(
            text, parse_int=_integer, parse_float=_finite, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _integer(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number that is too large")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
