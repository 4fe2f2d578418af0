"""Filters, sorts and pages a list of partitions, for groups of ten thousand.

A page ends with a cursor: the sorting key of its last row. The next page begins after that key, so
rows that appear or vanish in between neither repeat nor hide others.
"""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError
from penstock.model.json_text import read_json
from penstock.page.core.view import Json, View, split_name

LIMIT_DEFAULT = 100
LIMIT_MAX = 1_000
STATES = ("owned", "moving", "starting", "stopping", "stopped", "unread")
MARKS = ("hot", "oversize", "behind")


class BadQueryError(PenstockError):
    """A question to the API that cannot be answered as it is written."""


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    topic: str | None = None
    consumer: int | None = None
    # One of STATES or MARKS.
    state: str | None = None
    sort: str = "name"
    limit: int = LIMIT_DEFAULT
    after: str | None = None


# What a list can be sorted by. An unknown figure counts as less than any other.
_KEYS: dict[str, Callable[[View, str], float]] = {
    "name": lambda _, __: 0.0,
    "speed": lambda view, name: _known(view.partitions[name]["write_speed_bytes_per_s"]),
    "behind": lambda view, name: _known(view.partitions[name].get("behind_records")),
    "consumer": lambda view, name: _known(view.partitions[name]["consumer"]),
}
SORTS = tuple(f"{sign}{name}" for name in _KEYS for sign in ("", "-"))


def _known(figure: float | None) -> float:
    return -1.0 if figure is None else float(figure)


def listed(view: View, query: PartitionQuery) -> Json:
    """One page: its rows, how many there are in all, and the cursor of the next page."""
    sign = -1.0 if query.sort.startswith("-") else 1.0
    key_of = _KEYS[query.sort.removeprefix("-")]
    rows = [
        (sign * key_of(view, name), *split_name(name), name)
        for name in view.partitions
        if _matches(view, name, query)
    ]
    if query.sort == "-name":
        rows.sort(key=lambda row: row[:3], reverse=True)
    else:
        rows.sort()
    total = len(rows)
    if query.after is not None:
        last = read_cursor(query.after)
        rows = [
            row for row in rows if (row[:3] < last if query.sort == "-name" else row[:3] > last)
        ]
    page, rest = rows[: query.limit], len(rows) > query.limit
    return {
        "total": total,
        "next": _encoded(page[-1][:3]) if rest and page else None,
        "partitions": [view.partition(row[3]) for row in page],
    }


def _matches(view: View, name: str, query: PartitionQuery) -> bool:
    if query.topic is not None and name.rpartition("-")[0] != query.topic:
        return False
    if query.consumer is not None and view.partitions[name]["consumer"] != query.consumer:
        return False
    if query.state is None:
        return True
    if query.state in MARKS:
        return query.state in view.marks_of(name)
    return view.state_of(name) == query.state


def _encoded(key: tuple[Any, ...]) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[float, str, int]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        figure, topic, number = read_json(base64.urlsafe_b64decode(padded))
        return float(figure), str(topic), int(number)
    except (ValueError, TypeError, binascii.Error):
        raise BadQueryError("`after` is not a cursor: use `next` of the page before.") from None
