"""Which topics are measured: those the patterns name, but never internal or control topics.

Measurements are written to a control topic: if it were measured, a consumer would be busy with the
monitor's own messages.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Self

from penstock.errors import SettingsError
from penstock.settings.sections import MonitorSettings, TopicsSettings

# How many topics are named where none matches.
_NAMED_MAX = 5


class TopicsOfInterest:
    """Patterns match whole names. An exclude pattern wins over an include pattern."""

    def __init__(
        self, include: Iterable[str], exclude: Iterable[str] = (), *, never: Iterable[str] = ()
    ) -> None:
        self._include = tuple(re.compile(pattern) for pattern in include)
        self._exclude = tuple(re.compile(pattern) for pattern in exclude)
        self._never = frozenset(never)

    @classmethod
    def from_settings(cls, monitor: MonitorSettings, topics: TopicsSettings) -> Self:
        return cls(monitor.include, monitor.exclude, never=topics.names.all)

    def includes(self, topic: str, *, is_internal: bool) -> bool:
        # Kafka marks only some of its own topics as internal; the names of all of them, and of
        # those of its tools, begin with two underscores.
        if is_internal or topic in self._never or topic.startswith("__"):
            return False
        if not any(pattern.fullmatch(topic) for pattern in self._include):
            return False
        return not any(pattern.fullmatch(topic) for pattern in self._exclude)


def nothing_included(
    monitor: MonitorSettings,
    topics: TopicsSettings,
    names: Iterable[str],
    *,
    named_by: str = "monitor.include",
) -> SettingsError | None:
    """What to say when none of the topics in Kafka is measured; None if one is.

    A Kafka that has no topics yet, and patterns that take all, are no mistake.
    """
    interest = TopicsOfInterest.from_settings(monitor, topics)
    every = TopicsOfInterest([".*"], never=topics.names.all)
    there = [name for name in names if every.includes(name, is_internal=False)]
    if any(interest.includes(name, is_internal=False) for name in there):
        return None
    if not there and monitor.include == MonitorSettings().include:
        return None
    included = f"{named_by} {_quoted(monitor.include)}"
    left_out = f" without monitor.exclude {_quoted(monitor.exclude)}" if monitor.exclude else ""
    return SettingsError(
        f"No topic matches {included}{left_out}; {_there(monitor, there)}.",
        remedy="A pattern is a regular expression for a whole name: 'orders' or 'orders-.*'.",
    )


def _quoted(patterns: Iterable[str]) -> str:
    return " or ".join(f"'{pattern}'" for pattern in patterns)


def _there(monitor: MonitorSettings, names: list[str]) -> str:
    """The nearest names first, and not all of many."""
    if not names:
        return "Kafka has no topics, or none that this user may see"
    patterns = [re.sub(r"[^a-z0-9]", "", pattern.lower()) for pattern in monitor.include]

    def unlike(name: str) -> tuple[float, str]:
        small = re.sub(r"[^a-z0-9]", "", name.lower())
        return (-max(SequenceMatcher(None, one, small).ratio() for one in patterns), name)

    nearest = sorted(names, key=unlike)
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f"there are {', '.join(nearest[:_NAMED_MAX])}{more}"
