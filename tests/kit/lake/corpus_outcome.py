"""What became of a corpus in the lake, named as in the table of the documents."""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from kit.lake.hostile_corpus import Sent

Row = Mapping[str, Any]
Place = tuple[int, int]

AS_IT_IS = "as it is"
MISSING, EXTRA, TWICE = "MISSING", "OUT OF PLACE", "TWICE"
_FIRST = dt.datetime(1900, 1, 1, tzinfo=dt.UTC)
_LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)
_BEGIN = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def outcome(
    sent: Mapping[Place, Sent], rows: Iterable[Row], dead_letters: Iterable[Row] = ()
) -> str:
    """Every way in which a row differs from its record, or that none does. Pure."""
    found: set[str] = set()
    there: dict[Place, Row] = {}
    for row in rows:
        place = row["partition"], row["offset"]
        found |= {TWICE} if place in there else set()
        there[place] = row
    letters = {(row["partition"], row["offset"]): row for row in dead_letters}
    for place, record in sent.items():
        if place in there:
            found |= _differences(record, there[place])
        elif place in letters:
            is_same = (letters[place]["key"], letters[place]["value"]) == (record.key, record.value)
            found.add(f"dead letter: {letters[place]['reason']}" if is_same else "CHANGED letter")
        else:
            found.add(MISSING)
    if not (set(there) | set(letters)) <= set(sent):
        found.add(EXTRA)
    return "; ".join(sorted(found)) or "nothing to carry"


def _differences(record: Sent, row: Row) -> set[str]:
    found = {f"CHANGED {name}" for name in ("key", "value") if row[name] != getattr(record, name)}
    found |= _difference_of_times(record.timestamp_ms, row["timestamp"])
    if row["timestampType"] != record.timestamp_type:
        found.add("CHANGED timestampType")
    if "headers" in row:
        found |= _difference_of_headers(record, row["headers"])
    return found or {AS_IT_IS}


def _difference_of_times(time_ms: int, stored: dt.datetime) -> set[str]:
    first_ms, last_ms = (round((end - _BEGIN) / dt.timedelta(milliseconds=1)) for end in ENDS)
    if first_ms <= time_ms <= last_ms:
        is_same = stored == _BEGIN + dt.timedelta(milliseconds=time_ms)
        return set() if is_same else {"CHANGED timestamp"}
    nearest = _FIRST if time_ms < first_ms else _LAST
    if stored != nearest:
        return {"CHANGED timestamp"}
    return {f"timestamp set to the {'first' if nearest == _FIRST else 'last'} that tables hold"}


ENDS = (_FIRST, _LAST)


def _difference_of_headers(record: Sent, stored: list[Mapping[str, Any]] | None) -> set[str]:
    names = [name for name, _ in record.headers]
    if [header["value"] for header in stored or ()] != [value for _, value in record.headers]:
        return {"no headers"} if stored is None else {"CHANGED header value"}
    found = set()
    for name, header in zip(names, stored or (), strict=True):
        if header["key"].encode() == name:
            continue
        if header["key"] == name.decode(errors="replace"):
            found.add("other bytes in header names become U+FFFD")
        elif header["key"].encode() == name.split(b"\0")[0]:
            found.add("header name ends at the zero byte")
        else:
            found.add("CHANGED header name")
    return found
