"""What one consumer carries, in words: of which topic, from what to what, and how it is known."""

from collections.abc import Iterable
from typing import Any

from penstock.model.sentences import speed_text

TOPICS_SHOWN = 5
_SOURCES = {
    "set": "packing.capacity",
    "measured": "measured",
    "together": "measured together with other topics",
    "calibrated": "calibrated before the start",
    "assumed": "assumed: nothing is measured yet",
}


def capacity_text(found: dict[str, Any]) -> str:
    """Of a status; empty for that of an older controller, which does not say it."""
    capacity = found.get("capacity")
    if not capacity:
        return ""
    text = f"one consumer carries {speed_text(capacity['bytes_per_s'])}"
    topics = capacity["topics"]
    source = capacity["source"]
    if source == "set":
        return f"{text} ({_source_text(source)}{_measured_beside(topics.values())})"
    if not topics:
        return f"{text} ({_source_text(source)})"
    if len(topics) == 1:
        return f"{text} ({_how_known(next(iter(topics.values())))})"
    # The dearest first: they decide how many consumers are needed.
    dearest = sorted(topics.items(), key=lambda item: (item[1]["bytes_per_s"], item[0]))
    shown = [
        f"{topic} {speed_text(row['bytes_per_s'])} ({_how_known(row)})"
        for topic, row in dearest[:TOPICS_SHOWN]
    ]
    more = len(topics) - len(shown)
    rest = f", and of {more} more" if more else ""
    return f"{text} of all topics as they are written; of {', of '.join(shown)}{rest}"


def _measured_beside(rows: Iterable[dict[str, Any]]) -> str:
    """A figure that is set, or the default, may be far from what consumers do."""
    measured = sorted(one["measured_bytes_per_s"] for one in rows if one["measured_bytes_per_s"])
    if not measured:
        return ""
    least, most = speed_text(measured[0]), speed_text(measured[-1])
    return f"; measured {least if least == most else f'{least} to {most}'}"


def _how_known(row: dict[str, Any]) -> str:
    lowest, highest = row["lowest_bytes_per_s"], row["highest_bytes_per_s"]
    if row["source"] == "assumed" or lowest is None or lowest == highest:
        return _source_text(row["source"])
    return f"{_source_text(row['source'])}, {speed_text(lowest)} to {speed_text(highest)}"


def _source_text(source: str) -> str:
    """A word of another release is shown as it is."""
    return _SOURCES.get(source, source)
