"""A bar for one consumer: its capacity, filled with its partitions."""

from collections.abc import Iterable
from typing import Any

from rich.text import Text

# One colour for each topic, in the order of their names; used again when there are more topics.
_TOPIC_COLOURS = ("green", "cyan", "magenta", "blue", "yellow", "white")
# Neighbours in a bar differ, so that each partition is visible.
_BLOCKS = "█▓"
_EMPTY, _TARGET = "·", "┊"


def topic_colours(partitions: Iterable[str]) -> dict[str, str]:
    topics = sorted({name.rpartition("-")[0] for name in partitions})
    return {
        topic: _TOPIC_COLOURS[place % len(_TOPIC_COLOURS)] for place, topic in enumerate(topics)
    }


def share_of_capacity(consumer: dict[str, Any]) -> float:
    """0 where no capacity is known."""
    capacity = consumer["capacity_bytes_per_s"]
    return float(consumer["load_bytes_per_s"] / capacity) if capacity else 0.0


def consumer_bar(
    consumer: dict[str, Any],
    partitions: dict[str, dict[str, Any]],
    colours: dict[str, str],
    width: int,
    target: float | None = None,
) -> Text:
    """`target` is the share of the capacity that plans fill; it is marked where it is free."""
    text, load, filled = Text(), 0.0, 0
    capacity = consumer["capacity_bytes_per_s"] or float("inf")
    for place, name in enumerate(consumer["partitions"]):
        load += partitions.get(name, {}).get("write_speed_bytes_per_s") or 0.0
        reached = min(width, round(load / capacity * width))
        colour = colours.get(name.rpartition("-")[0], "white")
        text.append(_BLOCKS[place % len(_BLOCKS)] * (reached - filled), style=colour)
        filled = reached
    free = [_EMPTY] * (width - filled)
    mark = None if target is None else min(width - 1, round(target * width)) - filled
    if mark is not None and 0 <= mark < len(free):
        free[mark] = _TARGET
    return text.append("".join(free), style="dim")
