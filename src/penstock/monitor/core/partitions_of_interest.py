"""Which topics are measured: those the patterns name, but never internal or control topics.

Measurements are written to a control topic: if it were measured, a consumer would be busy with the
monitor's own messages.
"""

import re
from collections.abc import Iterable
from typing import Self

from penstock.settings.sections import MonitorSettings, TopicsSettings


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
