"""What a commit says about a file: how many rows it has, and the range of each column.

Readers skip files by these ranges, so a wrong one hides rows. They come from the file's footer.
"""

import datetime as dt
import json
import re
from dataclasses import dataclass
from typing import Any

_IN_LIST = re.compile(r"\.(list|key_value|array|bag)\b")
_WITHOUT_RANGE = {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY", "BOOLEAN"}
_TEXT_MAX = 32  # characters; a longer text would have to be cut, and its upper end raised


def file_stats(footer: Any) -> str:
    """The record count and, if every column that has a range tells it, the ranges.

    All or none: deltalake's reader takes a column without a range beside others that have one for a
    column that no filter can match, and would hide its rows.
    """
    stats: dict[str, Any] = {"numRecords": footer.num_rows}
    ranges = _ranges(footer)
    if ranges:
        stats["minValues"] = {name: _said(one.least, up=False) for name, one in ranges.items()}
        stats["maxValues"] = {name: _said(one.most, up=True) for name, one in ranges.items()}
        stats["nullCount"] = {name: one.nulls for name, one in ranges.items()}
    return json.dumps(stats, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Range:
    least: Any
    most: Any
    nulls: int


def _ranges(footer: Any) -> dict[str, _Range] | None:
    """Column -> its range; None when one of them is not known."""
    found: dict[str, _Range] = {}
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        if column.path != column.name:
            if _IN_LIST.search(column.path):
                continue  # lists and maps have no range
            return None
        if column.physical_type in _WITHOUT_RANGE and column.logical_type.type == "NONE":
            continue
        groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        stats = [group.statistics for group in groups]
        if not stats or not all(one is not None and one.has_min_max for one in stats):
            return None
        if not all(one.has_null_count and _has_order(one.min, one.max) for one in stats):
            return None
        found[column.name] = _Range(
            min(one.min for one in stats),
            max(one.max for one in stats),
            sum(one.null_count for one in stats),
        )
    return found


def _has_order(least: Any, most: Any) -> bool:
    """Whether the two can be written down as a range without loss."""
    if isinstance(least, str):
        return max(len(least), len(most)) <= _TEXT_MAX
    return isinstance(least, (int, dt.datetime)) and not isinstance(least, bool)


def _said(value: Any, *, up: bool) -> Any:
    """A time is written in milliseconds, rounded outwards so that the range holds every row."""
    if not isinstance(value, dt.datetime):
        return value
    utc = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    below = utc.replace(microsecond=utc.microsecond // 1000 * 1000)
    if up and below != utc:
        below += dt.timedelta(milliseconds=1)
    return below.isoformat(timespec="milliseconds") + "Z"
