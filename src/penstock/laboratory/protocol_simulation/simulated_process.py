"""What every simulated process can do: wait on the virtual clock, pause, and be dead."""

from collections.abc import Callable

from penstock.laboratory.protocol_simulation.virtual_clock import VirtualClock

# What was harmed has recovered then: several times the silence for which a consumer is given up.
RECOVERS_MS = 30_000
FOR_EVER_MS = float("inf")


class SimulatedProcess:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.is_alive = True
        self.is_paused = False
        self._harmed_until_ms = 0.0
        self._held_back: list[Callable[[], None]] = []
        self._wake_number = 0

    @property
    def is_harmed(self) -> bool:
        """Whether something happened to this process alone, and it may not have recovered yet."""
        return self.is_paused or self.clock.now_ms < self._harmed_until_ms

    def harm(self, for_ms: float = RECOVERS_MS) -> None:
        self._harmed_until_ms = max(self._harmed_until_ms, self.clock.now_ms + for_ms)

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Like a process: nothing happens when it is dead, and everything waits while it pauses."""

        def wake() -> None:
            if not self.is_alive:
                return
            if self.is_paused:
                self._held_back.append(action)
            else:
                action()

        self.clock.after(delay_ms, wake)

    def wake_at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Only the newest of these waits counts."""
        self._wake_number += 1
        number = self._wake_number

        def wake() -> None:
            if number == self._wake_number:
                action()

        self.later(at_ms - self.clock.now_ms, wake)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        if self.is_paused:
            self.harm()
        self.is_paused = False
        held, self._held_back = self._held_back, []
        for action in held:
            if self.is_alive:
                action()
