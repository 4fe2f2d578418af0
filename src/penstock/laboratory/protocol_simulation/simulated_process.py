"""What every simulated process can do: wait on the virtual clock, pause, and be dead."""

from collections.abc import Callable

from penstock.laboratory.protocol_simulation.virtual_clock import VirtualClock


class SimulatedProcess:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.is_alive = True
        self.is_paused = False
        # Something happened to this process alone, and not to all of them.
        self.is_harmed = False
        self._held_back: list[Callable[[], None]] = []
        self._wake_number = 0

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
        self.is_paused = False
        held, self._held_back = self._held_back, []
        for action in held:
            if self.is_alive:
                action()
