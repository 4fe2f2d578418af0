"""A clock that jumps from event to event; events at the same time run in the order of request."""

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class VirtualClock:
    """A queue of actions by time. The only clock in a simulation."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._asked = 0

    def at(self, time_ms: int, action: Action) -> None:
        self._asked += 1
        heapq.heappush(self._queue, (max(time_ms, self.now_ms), self._asked, action))

    def after(self, delay_ms: int, action: Action) -> None:
        self.at(self.now_ms + delay_ms, action)

    def run_until(self, time_ms: int, after_each: Action, events_max: int) -> None:
        """Run all actions up to a time, with a check after each."""
        while self._queue and self._queue[0][0] <= time_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
            self.events += 1
            after_each()
            if self.events > events_max:
                raise TooManyEventsError(f"more than {events_max} events by {self.now_ms} ms")
        self.now_ms = max(self.now_ms, time_ms)


class TooManyEventsError(Exception):
    """The simulation ran more events than its bound: something repeats without end (S11)."""
