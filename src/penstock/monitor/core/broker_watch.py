"""What the monitor's loop remembers between rounds, apart from the measured values.

When to ask for the layout (topics, partitions, leaders), which brokers are silent and since when,
and in which partitions to sample records next.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from penstock.model.broker_logs import LogName

# Samples begin this many records before the end, so that they are of the newest records.
_SAMPLE_RECORDS_BACK = 1000
# A doubtful layout is asked for at once, but not every round while the doubt lasts.
_DOUBTED_LAYOUT_EVERY_S = 1.0
# A failure that was absent for this long is logged when it comes again.
_FORGOTTEN_S = 60.0


@dataclass(slots=True)
class LayoutWatch:
    """The layout is asked for every `refresh_s`, and soon when something hints at a change."""

    refresh_s: float
    is_known: bool = False
    _received_at_s: float = 0.0
    _is_doubted: bool = False
    _count: int | None = None

    def is_due(self, now_s: float) -> bool:
        since_s = now_s - self._received_at_s
        if not self.is_known or since_s < 0 or since_s >= self.refresh_s:
            return True
        return self._is_doubted and since_s >= min(_DOUBTED_LAYOUT_EVERY_S, self.refresh_s)

    def doubt(self) -> None:
        self._is_doubted = True

    def received(self, now_s: float, count: int) -> bool:
        """True when the number of partitions changed."""
        self.is_known, self._is_doubted, self._received_at_s = True, False, now_s
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
    """Logs once that a broker is silent, and once that it answers again. -1 is the whole cluster.

    One late answer is no outage: silence is logged after `silent_after_s`.
    """

    silent_after_s: float
    _silent_since_s: dict[int, float] = field(default_factory=dict)
    _announced: set[int] = field(default_factory=set)
    _failing: dict[str, float] = field(default_factory=dict)

    def events(
        self, now_s: float, silent: Iterable[int], failures: Mapping[str, str]
    ) -> Iterator[LogEvent]:
        now_silent = set(silent)
        for broker in sorted(now_silent):
            since_s = self._silent_since_s.setdefault(broker, now_s)
            if broker not in self._announced and now_s - since_s >= self.silent_after_s:
                self._announced.add(broker)
                yield LogEvent("warning", "broker_silent", {"broker": broker})
        for broker in sorted(set(self._silent_since_s) - now_silent):
            silent_s = round(now_s - self._silent_since_s.pop(broker), 1)
            if broker in self._announced:
                self._announced.remove(broker)
                back = {"broker": broker, "silent_s": silent_s}
                yield LogEvent("info", "broker_answers_again", back)
        for question in sorted(set(failures) - set(self._failing)):
            keys = {"question": question, "error": failures[question]}
            yield LogEvent("warning", "question_failed", keys)
        self._failing |= dict.fromkeys(failures, now_s)
        for question in [one for one, at_s in self._failing.items() if now_s - at_s > _FORGOTTEN_S]:
            del self._failing[question]


def sample_plan(
    spans: Sequence[tuple[LogName, int, int]], *, after: LogName | None, limit: int
) -> list[tuple[LogName, int]]:
    """Up to `limit` logs that follow `after`, beginning again at the first, and where to read.

    `spans` are names with first and end offset, sorted by name.
    """
    filled = [(name, start, end) for name, start, end in spans if end > start]
    later = [one for one in filled if after is None or one[0] > after]
    earlier = [one for one in filled if after is not None and one[0] <= after]
    return [
        (name, max(start, end - _SAMPLE_RECORDS_BACK))
        for name, start, end in islice([*later, *earlier], limit)
    ]
