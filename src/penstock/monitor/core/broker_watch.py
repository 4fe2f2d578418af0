"""Small memories of the monitor's loop, kept out of it so that they can be tested without brokers.

When to ask for the layout, which brokers are silent and since when, and in which partitions to look
at records next.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from penstock.model.broker_logs import LogName

# Records are looked at from this many before the end, so that the sample is of the newest.
_SAMPLE_RECORDS_BACK = 1000
# A suspicion is looked into at once, but a lasting one must not mean a question every turn.
_DISTRUST_EVERY_S = 1.0
# A failure that has not been seen for so long is news when it comes again.
_FORGOTTEN_S = 60.0


@dataclass(slots=True)
class LayoutWatch:
    """Topics, partitions and leaders are asked for on a slow timer, or at once on a hint."""

    refresh_s: float
    is_known: bool = False
    _taken_at_s: float = 0.0
    _is_distrusted: bool = False
    _count: int | None = None

    def is_due(self, now_s: float) -> bool:
        since_s = now_s - self._taken_at_s
        if not self.is_known or since_s < 0 or since_s >= self.refresh_s:
            return True
        return self._is_distrusted and since_s >= min(_DISTRUST_EVERY_S, self.refresh_s)

    def distrust(self) -> None:
        self._is_distrusted = True

    def taken(self, now_s: float, count: int) -> bool:
        """True when the number of partitions changed."""
        self.is_known, self._is_distrusted, self._taken_at_s = True, False, now_s
        changed = count != self._count
        self._count = count
        return changed


@dataclass(frozen=True, slots=True)
class LogEvent:
    level: Literal["info", "warning"]
    name: str
    keys: Mapping[str, Any]


@dataclass(slots=True)
class OutageWatch:
    """Says once that a broker fell silent, and once that it is back. -1 is the cluster itself.

    One late answer is no outage: silence is news after `patience_s`.
    """

    patience_s: float = 3.0
    _silent_since_s: dict[int, float] = field(default_factory=dict)
    _announced: set[int] = field(default_factory=set)
    _failing: dict[str, float] = field(default_factory=dict)

    def seen(
        self, now_s: float, silent: Iterable[int], failures: Mapping[str, str]
    ) -> Iterator[LogEvent]:
        now_silent = set(silent)
        for broker in sorted(now_silent):
            since_s = self._silent_since_s.setdefault(broker, now_s)
            if broker not in self._announced and now_s - since_s >= self.patience_s:
                self._announced.add(broker)
                yield LogEvent("warning", "broker_silent", {"broker": broker})
        for broker in sorted(set(self._silent_since_s) - now_silent):
            silent_s = round(now_s - self._silent_since_s.pop(broker), 1)
            if broker in self._announced:
                self._announced.remove(broker)
                again = {"broker": broker, "silent_s": silent_s}
                yield LogEvent("info", "broker_answers_again", again)
        for what in sorted(set(failures) - set(self._failing)):
            keys = {"what": what, "error": failures[what]}
            yield LogEvent("warning", "question_failed", keys)
        self._failing |= dict.fromkeys(failures, now_s)
        for what in [one for one, at_s in self._failing.items() if now_s - at_s > _FORGOTTEN_S]:
            del self._failing[what]


def sample_plan(
    spans: Sequence[tuple[LogName, int, int]], *, after: LogName | None, limit: int
) -> list[tuple[LogName, int]]:
    """The next logs to look into, in turn, and from which offset. `spans` are sorted by name."""
    filled = [(name, start, end) for name, start, end in spans if end > start]
    later = [one for one in filled if after is None or one[0] > after]
    earlier = [one for one in filled if after is not None and one[0] <= after]
    return [
        (name, max(start, end - _SAMPLE_RECORDS_BACK))
        for name, start, end in islice([*later, *earlier], limit)
    ]
