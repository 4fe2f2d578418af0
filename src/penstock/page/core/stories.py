"""What happened to each partition and each consumer, in bounded memory.

Two series for each: the last ten minutes, and the whole time in steps that double when they are too
many. Large groups get fewer points. Changes of the owner and of the state are kept one by one.
"""

from array import array
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from penstock.page.core.view import Json, View

# Points of one series, by the number of partitions or consumers that share the memory.
POINTS_ALL_TOGETHER = 200_000
POINTS_MIN, POINTS_MAX = 30, 300
RECENT_MS = 600_000
CHANGES_MAX = 100
CONSUMERS_MAX = 2_000
PARTITION_FIELDS = ("write_speed_bytes_per_s", "behind_records", "next_offset", "end_offset")
CONSUMER_FIELDS = ("load_bytes_per_s", "carried_bytes_per_s", "behind_records", "partitions")
_UNKNOWN = float("nan")


def points_for(members: int) -> int:
    return max(POINTS_MIN, min(POINTS_MAX, POINTS_ALL_TOGETHER // max(1, members)))


class Series:
    """Figures over time. Rows are interleaved in one array: the time, then the figures."""

    def __init__(self, width: int, step_ms: int, points_max: int, *, is_thinned: bool) -> None:
        self._width = width + 1
        self._step_ms = step_ms
        self._points_max = points_max
        self._is_thinned = is_thinned
        self._rows = array("d")

    def add(self, at_unix_ms: int, figures: tuple[float | None, ...]) -> None:
        rows, width = self._rows, self._width
        if rows and at_unix_ms - rows[-width] < self._step_ms:
            return
        # As a whole: half a row would move all that come after it.
        rows.extend(array("d", (at_unix_ms, *(_UNKNOWN if x is None else x for x in figures))))
        if len(rows) <= self._points_max * width:
            return
        if self._is_thinned:
            kept = array("d")
            for place in range(0, len(rows), 2 * width):
                kept.extend(rows[place : place + width])
            self._rows = kept
            self._step_ms *= 2
        else:
            del rows[:width]

    def answer(self, names: tuple[str, ...]) -> Json:
        rows, width = self._rows, self._width
        return {
            "at_unix_ms": [int(one) for one in rows[::width]],
            **{
                name: [None if one != one else one for one in rows[place + 1 :: width]]  # noqa: PLR0124 -- not a number
                for place, name in enumerate(names)
            },
        }


@dataclass(frozen=True, slots=True)
class Change:
    at_unix_ms: int
    consumer: int | None
    state: str


@dataclass(slots=True)
class Story:
    recent: Series
    whole: Series
    changes: deque[Change] = field(default_factory=lambda: deque(maxlen=CHANGES_MAX))

    def note(self, at_unix_ms: int, consumer: int | None, state: str) -> None:
        last = self.changes[-1] if self.changes else None
        if last is None or (last.consumer, last.state) != (consumer, state):
            self.changes.append(Change(at_unix_ms, consumer, state))

    def answer(self, names: tuple[str, ...]) -> Json:
        ends = [one.at_unix_ms for one in self.changes][1:]
        return {
            "changes": [
                {
                    "from_unix_ms": one.at_unix_ms,
                    "to_unix_ms": end_ms,
                    "consumer": one.consumer,
                    "state": one.state,
                }
                for one, end_ms in zip(self.changes, [*ends, None], strict=True)
            ],
            "recent": self.recent.answer(names),
            "whole": self.whole.answer(names),
        }


class Stories:
    def __init__(self) -> None:
        self._added_unix_ms: int | None = None
        self._partitions: OrderedDict[str, Story] = OrderedDict()
        self._consumers: OrderedDict[int, Story] = OrderedDict()

    def add(self, view: View) -> None:
        at_ms = view.at_unix_ms
        has_figures = self._is_due(at_ms, len(view.partitions))
        for name, one in view.partitions.items():
            story = self._story(self._partitions, name, len(PARTITION_FIELDS), len(view.partitions))
            story.note(at_ms, one["consumer"], view.state_of(name))
            if not has_figures:
                continue
            figures = (
                one["write_speed_bytes_per_s"],
                one.get("behind_records"),
                one.get("next_offset"),
                one.get("end_offset"),
            )
            story.recent.add(at_ms, figures)
            story.whole.add(at_ms, figures)
        for name in [one for one in self._partitions if one not in view.partitions]:
            del self._partitions[name]
        present = {one["consumer"]: one for one in view.snapshot["consumers"]}
        for number, consumer in present.items():
            story = self._story(self._consumers, number, len(CONSUMER_FIELDS), len(present))
            held = (
                consumer["load_bytes_per_s"],
                view.carried.get(number),
                consumer["behind_records"],
                len(consumer["partitions"]),
            )
            story.recent.add(at_ms, held)
            story.whole.add(at_ms, held)
            story.note(at_ms, number, consumer["status"])
        for number, story in self._consumers.items():
            if number not in present:
                story.note(at_ms, number, "gone")
        while len(self._consumers) > max(CONSUMERS_MAX, len(present)):
            self._consumers.popitem(last=False)

    def _is_due(self, at_ms: int, partitions: int) -> bool:
        """Whether the figures of partitions are kept now: in large groups that is seldom."""
        last_ms = self._added_unix_ms
        if last_ms is not None and 0 <= at_ms - last_ms < RECENT_MS // points_for(partitions):
            return False
        self._added_unix_ms = at_ms
        return True

    @staticmethod
    def _story(stories: OrderedDict[Any, Story], key: Any, width: int, members: int) -> Story:
        story = stories.get(key)
        if story is None:
            points = points_for(members)
            recent = Series(width, RECENT_MS // points, points, is_thinned=False)
            story = stories[key] = Story(recent, Series(width, 1_000, points, is_thinned=True))
        return story

    def consumers(self) -> list[int]:
        """Those of now, and those that are gone and remembered."""
        return sorted(self._consumers)

    def of_partition(self, name: str) -> Json | None:
        story = self._partitions.get(name)
        return None if story is None else story.answer(PARTITION_FIELDS)

    def of_consumer(self, number: int) -> Json | None:
        story = self._consumers.get(number)
        return None if story is None else story.answer(CONSUMER_FIELDS)
