"""A simulated controller process: the real state machine, and effects that can be cut short.

It saves its state where the next incarnation finds it, and can crash after any single effect.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.state import Phase, State
from penstock.controller.core.state_machine import Machine
from penstock.messages import (
    FromConsumer,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
)

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup


class SimulatedController:
    def __init__(self, group: "SimulatedGroup", epoch: int, saved: State | None) -> None:
        self.group = group
        self.epoch = epoch
        self.is_alive = True
        self.is_paused = False
        # Counts down over effects; the process dies when it reaches zero.
        self.effects_to_live: int | None = None
        # For L1: steps that did something new, and consumers that were made.
        self.acting_steps = 0
        self.consumers_made = 0
        self._tick_number = 0
        self._held_back: list[Callable[[], None]] = []
        self.machine = Machine()
        self.state, effects = self.machine.begin(
            controller_epoch=epoch,
            settings=group.settings,
            now_ms=group.clock.now_ms,
            saved=saved,
        )
        self._run(effects)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        def wake() -> None:
            if not self.is_alive:
                return
            if self.is_paused:
                self._held_back.append(action)
            else:
                action()

        self.group.clock.after(delay_ms, wake)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        held, self._held_back = self._held_back, []
        for action in held:
            if self.is_alive:
                action()

    def crash(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self.group.controller_ended()

    def hear(self, message: FromConsumer) -> None:
        now = self.group.clock.now_ms
        self._later(0, lambda: self.take(inputs.ConsumerSpoke(now, message)))

    def feed(self, make: Callable[[int], inputs.Input], delay_ms: int = 0) -> None:
        self._later(delay_ms, lambda: self.take(make(self.group.clock.now_ms)))

    def take(self, given: inputs.Input) -> None:
        before = self.state
        self.state, effects = self.machine.step(self.state, given)
        if self.state.holdings is not before.holdings or self.state.plan is not before.plan:
            check_whole(self.state)
        self.group.checker.controller_stepped(self, before, self.state, effects)
        self.acting_steps += _is_acting(before, self.state, effects)
        self._run(effects)

    def _run(self, effects: tuple[act.Effect, ...]) -> None:
        for effect in effects:
            self._do(effect)
            if self.effects_to_live is not None:
                self.effects_to_live -= 1
                if self.effects_to_live <= 0:
                    self.group.note("controller died after an effect")
                    self.crash()
            if not self.is_alive:
                return

    def _do(self, effect: act.Effect) -> None:
        group = self.group
        if isinstance(effect, act.SaveState):
            group.save(self.state)
        elif isinstance(effect, act.Send):
            self._send(effect)
        elif isinstance(effect, act.ListDeployments):
            group.deployment.list(self)
        elif isinstance(effect, act.CreateConsumer):
            self.consumers_made += 1
            group.deployment.create(self, effect.consumer, effect.version)
        elif isinstance(effect, act.DeleteConsumer):
            group.deployment.delete(self, effect.consumer)
        elif isinstance(effect, act.Pack):
            group.pack(self, effect)
        elif isinstance(effect, act.WaitUntil):
            self._wait(effect.at_ms)
        elif isinstance(effect, act.StepDown):
            group.note("controller stepped down")
            self.crash()

    def _wait(self, at_ms: int) -> None:
        self._tick_number += 1
        number = self._tick_number

        def tick() -> None:
            if number == self._tick_number:
                now = self.group.clock.now_ms
                self.take(inputs.Tick(now, unix_ms=now))

        self._later(at_ms - self.group.clock.now_ms, tick)

    def _send(self, effect: act.Send) -> None:
        group = self.group
        message = effect.message
        if group.is_fencing and group.newest_epoch > self.epoch:
            group.note("old controller fenced by the broker")
            if self.state.phase is not Phase.SUPERSEDED:
                self.feed(inputs.LeadershipLost)
            return
        if isinstance(message, (StartConsumingCommand, StopConsumingCommand, StateQuery)):
            group.checker.sent(self, message)
            group.to_consumer(self, message)


def _is_acting(before: State, after: State, effects: tuple[act.Effect, ...]) -> bool:
    """Whether a step did something new: neither only asked, nor only said it again."""
    if before.counts.get("commands_resent", 0) != after.counts.get("commands_resent", 0):
        return False
    return any(
        not isinstance(effect, (act.WaitUntil, act.SaveState, act.ListDeployments))
        and not (isinstance(effect, act.Send) and isinstance(effect.message, StateQuery))
        for effect in effects
    )
