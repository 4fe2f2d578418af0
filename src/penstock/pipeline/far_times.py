"""Times that no reader in Python shows, because they are after the year 9999 or before the year 1.

They are hardly ever meant: mostly milliseconds were taken for seconds. `penstock try` shows the
other values of such a row and names the columns; a start and a roll-out are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.pipeline.failures import TransformationFailedError

_SECONDS_OF_YEAR = 31_556_952
_UNITS_OF_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_OF_DAY = 86_400


@dataclass(frozen=True, slots=True)
class FarTime:
    """In place of a value that Python has no type for; None where the year is not known."""

    year: int | None

    def __str__(self) -> str:
        return "far from now" if self.year is None else f"in the year {self.year}"


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as Python's values, with `FarTime` for those that cannot be one."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except (OverflowError, ValueError):
        columns = {name: [_value(one) for one in table[name]] for name in table.column_names}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows


def far_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, FarTime]:
    """The columns whose values are all far times, with the first of them."""
    found: dict[str, FarTime] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows if row.get(name) is not None]
        if values and all(isinstance(one, FarTime) for one in values):
            found[name] = values[0]
    return found


def far_times_error(transformation: str, far: Mapping[str, FarTime]) -> TransformationFailedError:
    named = ", ".join(f"{name} ({when})" for name, when in far.items())
    return TransformationFailedError(
        f"The transformation {transformation} makes times that readers in Python cannot show: "
        f"{named}.",
        remedy="Mostly milliseconds were taken for seconds: use timestamp_millis for those.",
    )


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return FarTime(_year(scalar))


def _year(scalar: Any) -> int | None:
    if pa.types.is_timestamp(scalar.type):
        seconds = scalar.value // _UNITS_OF_SECOND[scalar.type.unit]
    elif pa.types.is_date32(scalar.type):
        seconds = scalar.value * _SECONDS_OF_DAY
    else:
        return None  # inside of a list or a structure
    return 1970 + int(seconds // _SECONDS_OF_YEAR)
