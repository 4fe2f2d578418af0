"""Numbers with units: `30s`, `2MiB`, `1.5MB/s`.

A duration needs its unit, because a bare 30 could be milliseconds. Bytes may be a bare whole
number. So may a speed, unless it is so small that a unit was forgotten. All are plain numbers in
the code (seconds, bytes) and print with a unit.
"""

import math
import re
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

# Nothing that Penstock waits for or counts is larger, and sums of these never overflow.
DURATION_S_MAX = 1e12
BYTES_MAX = 10**18
# A speed without a unit is in bytes a second; below this somebody meant another unit.
BARE_SPEED_MIN = 1_000
_NUMBER_AND_UNIT = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([a-zA-Z/]*)")
SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES_PER_UNIT = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


def _split(text: str, kind: str, example: str) -> tuple[float, str]:
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a {kind}, for instance {example}")
    number = float(match.group(1))
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{text!r}: a {kind} must be finite and not negative")
    return number, match.group(2)


def parse_duration(value: Any) -> float:
    """`500ms`, `30s`, `5m`, `1h`, `7d` -> seconds."""
    number, unit = _split(str(value), "duration", "30s or 5m")
    if unit not in SECONDS_PER_UNIT:
        known = ", ".join(SECONDS_PER_UNIT)
        problem = f"has the unknown unit {unit!r}" if unit else "has no unit"
        raise ValueError(f"the duration {str(value)!r} {problem}; use one of {known}")
    seconds = number * SECONDS_PER_UNIT[unit]
    if seconds > DURATION_S_MAX:
        raise ValueError(f"the duration {str(value)!r} is longer than {DURATION_S_MAX:.0f} s")
    return seconds


def parse_bytes(value: Any) -> int:
    """`512`, `64kB`, `2MiB` -> bytes."""
    number, unit = _split(str(value), "size", "16MiB or 5MB")
    if unit and unit not in BYTES_PER_UNIT:
        known = ", ".join(unit for unit in BYTES_PER_UNIT if unit != "KB")
        raise ValueError(
            f"the size {str(value)!r} has the unknown unit {unit!r}; use one of {known}"
        )
    return round(_within_maximum(number * BYTES_PER_UNIT[unit or "B"], f"size {str(value)!r}"))


def parse_speed(value: Any) -> float:
    """`1.5MB/s`, `800kB/s`, `2MiB/s` -> bytes per second."""
    text = str(value).strip()
    if not text.endswith("/s") and not text.replace(".", "", 1).isdigit():
        raise ValueError(f"{text!r} is not a speed, for instance 1.5MB/s")
    number, unit = _split(text.removesuffix("/s"), "speed", "1.5MB/s")
    if unit and unit not in BYTES_PER_UNIT:
        raise ValueError(f"the speed {text!r} has the unknown unit {unit + '/s'!r}; use MB/s, kB/s")
    if not text.endswith("/s") and 0 < number < BARE_SPEED_MIN:
        raise ValueError(
            f"the speed {text!r} has no unit; did you mean {text}MB/s? {text} bytes a second are "
            f"{text}B/s"
        )
    return _within_maximum(number * BYTES_PER_UNIT[unit or "B"], f"speed {text!r}")


def _within_maximum(count: float, what: str) -> float:
    if count > BYTES_MAX:
        raise ValueError(f"the {what} is above {format_bytes(BYTES_MAX)}")
    return count


# More bytes than this are printed with a larger unit: 494.327kB, not 494327B.
READABLE_BYTES = 10_000


def _shortest(value: float, units: dict[str, float] | dict[str, int], smallest: str) -> str:
    """The largest unit that gives a whole number; many bytes get a larger one with a fraction."""
    for unit, size in sorted(units.items(), key=lambda item: (-item[1], item[0])):
        is_readable = unit != "B" or value < READABLE_BYTES
        if unit != "KB" and is_readable and value >= size and value % size == 0:
            return f"{value / size:.0f}{unit}"
    if units is BYTES_PER_UNIT and value >= READABLE_BYTES:
        unit = next(one for one in ("TB", "GB", "MB", "kB") if value >= BYTES_PER_UNIT[one])
        readable = f"{value / BYTES_PER_UNIT[unit]:.12g}"
        if float(readable) * BYTES_PER_UNIT[unit] == value:
            return f"{readable}{unit}"
    return f"{value / units[smallest]:.12g}{smallest}"


def format_duration(seconds: float) -> str:
    return "0s" if seconds == 0 else _shortest(seconds, SECONDS_PER_UNIT, "s")


def format_bytes(count: float) -> str:
    return "0B" if count == 0 else _shortest(count, BYTES_PER_UNIT, "B")


def format_speed(bytes_per_s: float) -> str:
    return f"{format_bytes(bytes_per_s)}/s"


# Instead of a number: Penstock finds it out.
AUTO: Final = "auto"


def parse_speed_or_auto(value: Any) -> float | Literal["auto"]:
    """`auto`, or a speed."""
    if str(value).strip().lower() == AUTO:
        return AUTO
    try:
        return parse_speed(value)
    except ValueError as error:
        raise ValueError(f"{error}; or {AUTO}") from None


def format_speed_or_auto(value: float | Literal["auto"]) -> str:
    return AUTO if value == AUTO else format_speed(value)


# Defaults are plain numbers and not validated; values of users go through the parsers.
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["30s", "5m"]}),
]
ByteSize = Annotated[
    int,
    BeforeValidator(parse_bytes),
    PlainSerializer(format_bytes, return_type=str),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["16MiB", "5MB"]}),
]
Speed = Annotated[
    float,
    BeforeValidator(parse_speed),
    PlainSerializer(format_speed, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["1.5MB/s"]}),
]
SpeedOrAuto = Annotated[
    float | Literal["auto"],
    BeforeValidator(parse_speed_or_auto),
    PlainSerializer(format_speed_or_auto, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["1.5MB/s", AUTO]}),
]
