"""What a commit says about a file: how many rows it has, and the range of each column.

Readers skip files by these ranges, so a wrong one hides rows. The ranges come from the file's
footer, in the form that Delta's protocol asks for: nested fields as nested objects, texts cut to
32 characters (the upper end raised), times in milliseconds (rounded outwards).

A column without values has a null count and no range. Keys, values, lists and maps have neither.
The ends of a number may be unknown (NaN) or a time may lie outside the years 1 to 9999. Inside a
struct such a field alone has no range. For a column it costs the file all its ranges: the pyarrow
reader of deltalake 1.6 takes a missing range beside others for one that no filter matches, and
would hide the rows (decision 0047).
"""

import datetime as dt
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.pipeline.copied_values import CopiedColumn, CopiedValues, Path

TEXT_CHARACTERS_MAX = 32
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- the zone is added where the column has one
_US_PER_MS = 1000
_US_PER_UNIT = {"s": 1_000_000, "ms": 1000, "us": 1}
_SURROGATES = range(0xD800, 0xE000)
# Parquet's Java writer gives NaN as the upper end of a column that has one; Arrow's leaves NaN out,
# so that its ranges of fractions cannot be trusted unless the values were looked at.
_SAYS_NAN = "parquet-mr"


class _Unknown(Exception):  # noqa: N818 -- no failure: the column has values and no known range
    """The column has values, but its range cannot be written down."""


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of the footer, or one field of a struct."""

    path: Path
    type: Any
    statistics: Sequence[Any]

    @property
    def nulls(self) -> int | None:
        if all(one is not None and one.has_null_count for one in self.statistics):
            return sum(int(one.null_count) for one in self.statistics)
        return None

    def ends(self, *, is_nan_visible: bool) -> tuple[Any, Any] | None:
        """The lowest and the highest value, as Parquet stores them; None if all are null."""
        found = []
        for one in self.statistics:
            if one is not None and one.has_min_max:
                found.append((one.min_raw, one.max_raw))
            elif one is None or not one.has_null_count or one.num_values:
                raise _Unknown
        if not found and self.nulls is None:
            raise _Unknown
        if not found:
            return None
        if pa.types.is_floating(self.type) and not is_nan_visible:
            raise _Unknown
        numbers = [[_comparable(end, self.type) for end in ends] for ends in found]
        return min(low for low, _ in numbers), max(high for _, high in numbers)


def file_stats(footer: Any, *, copied: CopiedValues | None = None) -> str:
    """The statistics of a file as JSON. `copied`: what is known of all its rows, if they are."""
    known = {} if copied is None else copied.columns
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    is_nan_visible = str(footer.created_by).startswith(_SAYS_NAN)
    has_ranges = True
    for column in _columns(footer):
        one = known.get(column.path)
        null_count = column.nulls if one is None else one.nulls
        if null_count is not None:
            _put(nulls, column.path, null_count)
        try:
            if one is None:
                ends = column.ends(is_nan_visible=is_nan_visible)
            else:
                ends = _known_ends(one, column.type)
            if ends is not None:
                low, high = _text_of(ends[0], column.type, 0), _text_of(ends[1], column.type, 1)
                _put(least, column.path, low)
                _put(most, column.path, high)
        except (_Unknown, OverflowError, ValueError):
            has_ranges = has_ranges and len(column.path) > 1
    parts = [f'"numRecords":{footer.num_rows}']
    if has_ranges and least:
        parts += [f'"minValues":{_json(least)}', f'"maxValues":{_json(most)}']
    if nulls:
        parts.append(f'"nullCount":{_json(nulls)}')
    return "{" + ",".join(parts) + "}"


def _known_ends(column: CopiedColumn, kind: Any) -> tuple[Any, Any] | None:
    if column.has_nan:
        raise _Unknown
    if column.ends is None:
        return None
    return _comparable(column.ends[0], kind), _comparable(column.ends[1], kind)


def _columns(footer: Any) -> Iterator[_Column]:
    """The columns that can have a range, in the order of the footer."""
    leaves = [leaf for field in footer.schema.to_arrow_schema() for leaf in _leaves((), field)]
    for index, (path, kind, has_order) in enumerate(leaves):
        if has_order:
            groups = range(footer.num_row_groups)
            statistics = [footer.row_group(group).column(index).statistics for group in groups]
            yield _Column(path, kind, statistics)


def _leaves(
    above: Path, field: Any, *, is_repeated: bool = False
) -> Iterator[tuple[Path, Any, bool]]:
    """Every stored column below a field, with whether it can have a range."""
    path, kind = (*above, field.name), field.type
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _leaves(path, inner, is_repeated=is_repeated)
    elif pa.types.is_map(kind):
        for inner in (kind.key_field, kind.item_field):
            yield from _leaves(path, inner, is_repeated=True)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(path, kind.value_field, is_repeated=True)
    else:
        yield path, kind, not is_repeated and _has_order(kind)


def _has_order(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
        or types.is_decimal128(kind)
    )


def _comparable(raw: Any, kind: Any) -> Any:
    """A stored value in a form that compares as the column does: texts by their bytes."""
    if pa.types.is_decimal128(kind) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    if isinstance(raw, float) and not math.isfinite(raw):
        raise _Unknown
    return raw


def _text_of(value: Any, kind: Any, up: int) -> Any:
    """An end of a range as Delta writes it; `up` is 1 for the upper end."""
    types = pa.types
    if types.is_string(kind):
        text = value.decode() if isinstance(value, bytes) else str(value)
        return cut_text_up(text) if up else text[:TEXT_CHARACTERS_MAX]
    if types.is_date32(kind):
        return dt.date.fromordinal(value + _EPOCH_DAY).isoformat()
    if types.is_timestamp(kind):
        # Rounded outwards: down for the lower end, up for the upper one.
        if kind.unit not in _US_PER_UNIT:
            raise _Unknown
        in_us = value * _US_PER_UNIT[kind.unit]
        in_ms = -(-in_us // _US_PER_MS) if up else in_us // _US_PER_MS
        moment = _EPOCH + dt.timedelta(milliseconds=in_ms)
        return moment.isoformat(timespec="milliseconds") + ("" if kind.tz is None else "Z")
    if types.is_decimal128(kind):
        digits = Decimal(value).as_tuple()
        return Decimal((digits.sign, digits.digits, -kind.scale))  # exact, unlike arithmetic
    return value


def cut_text_up(text: str) -> str:
    """The text if it is short, otherwise one of 32 characters at most that comes after it."""
    if len(text) <= TEXT_CHARACTERS_MAX:
        return text
    for length in range(TEXT_CHARACTERS_MAX, 0, -1):
        code = ord(text[length - 1]) + 1
        code = _SURROGATES.stop if code in _SURROGATES else code
        if code <= 0x10FFFF:
            return text[: length - 1] + chr(code)
    return text


def _put(into: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
    into[path[-1]] = value


def _json(value: Any) -> str:
    """JSON with decimals as plain numbers, digit for digit."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{_json(v)}" for k, v in value.items()) + "}"
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value)
