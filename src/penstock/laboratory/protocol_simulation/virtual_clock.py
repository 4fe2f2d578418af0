"""Time that passes only when something happens; equal times run in the order of asking."""

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class VirtualClock:
    """A queue of things to do at a time. The only clock of a simulation."""

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
        """Everything up to then, with a check after each. Too many events is a storm."""
        while self._queue and self._queue[0][0] <= time_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
            self.events += 1
            after_each()
            if self.events > events_max:
                raise TooManyEventsError(f"more than {events_max} events by {self.now_ms} ms")
        self.now_ms = max(self.now_ms, time_ms)


class TooManyEventsError(Exception):
    """More happened than a group that works can cause (S11)."""
