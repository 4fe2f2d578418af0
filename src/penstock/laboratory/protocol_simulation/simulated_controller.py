"""A simulated controller process: the real state machine with simulated effects.

It saves its state for its next start, and can crash after any single effect.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.state import Phase, State
from penstock.controller.core.state_machine import Machine
from penstock.laboratory.protocol_simulation.scenario import BAD_DEPLOYMENT, TICK_BUSY_MS
from penstock.laboratory.protocol_simulation.simulated_process import SimulatedProcess
from penstock.messages import (
    FromConsumer,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
)

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup


class SimulatedController(SimulatedProcess):
    def __init__(self, group: "SimulatedGroup", epoch: int, saved: State | None) -> None:
        super().__init__(group.clock)
        self.group = group
        self.epoch = epoch
        # Counts down with each effect; the process crashes at zero.
        self.effects_until_crash: int | None = None
        # For the bound on convergence (L1): steps that did something new, and created consumers.
        self.acting_steps = 0
        self.consumers_made = 0
        self.machine = Machine(tick_busy_ms=TICK_BUSY_MS)
        self.state, effects = self.machine.begin(
            controller_epoch=epoch,
            settings=group.chosen,
            now_ms=group.clock.now_ms,
            saved=saved,
            calibrated=group.calibrated,
        )
        self._run(effects)

    def crash(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self.group.controller_ended()

    def receive(self, message: FromConsumer) -> None:
        now = self.clock.now_ms
        offset = self.group.log_end
        self.later(0, lambda: self.take(inputs.ConsumerMessageRead(now, message, offset)))

    def send_input(self, make: Callable[[int], inputs.Input], delay_ms: int = 0) -> None:
        self.later(delay_ms, lambda: self.take(make(self.clock.now_ms)))

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
            if self.effects_until_crash is not None:
                self.effects_until_crash -= 1
                if self.effects_until_crash <= 0:
                    self.group.count_event("controller died after an effect")
                    self.crash()
            if not self.is_alive:
                return

    def _do(self, effect: act.Effect) -> None:
        group = self.group
        if isinstance(effect, act.SaveState):
            group.save(self.state)
        elif isinstance(effect, act.Send):
            self._send(effect)
        elif isinstance(effect, act.SendHeartbeat):
            group.to_itself(self, effect.message)
        elif isinstance(effect, act.Pack):
            group.pack(self, effect)
        elif isinstance(effect, act.WaitUntil):
            self.wake_at(effect.at_ms, self._tick)
        elif isinstance(effect, act.AskWhoLeads):
            self._ask_who_leads()
        elif isinstance(effect, act.StepDown):
            group.checker.controller_steps_down(self)
            group.count_event("controller stepped down")
            self.crash()
        else:
            self._deploy(effect)

    def _ask_who_leads(self) -> None:
        """The broker knows, also where it lets an old controller's messages pass."""
        leads = self.group.newest_epoch == self.epoch
        self.send_input(inputs.LeadershipConfirmed if leads else inputs.LeadershipLost)

    def _deploy(self, effect: act.Effect) -> None:
        deployment = self.group.deployment
        if isinstance(effect, act.ListDeployments):
            deployment.list(self)
        elif isinstance(effect, act.CreateConsumer):
            self.consumers_made += 1
            deployment.create(self, effect.consumer, effect.version)
        elif isinstance(effect, act.DeleteConsumer):
            deployment.delete(self, effect.consumer)
        elif isinstance(effect, act.TryDeployment):
            deployment.try_out(self, effect.version)
        elif isinstance(effect, act.SetDeploymentTemplate):
            is_bad = BAD_DEPLOYMENT in effect.request.environment
            deployment.set_template(effect.version, is_bad=is_bad)
        elif isinstance(effect, act.RestoreDeploymentTemplate):
            deployment.restore_template(effect.version)

    def _tick(self) -> None:
        now = self.clock.now_ms
        self.take(inputs.Tick(now, unix_ms=now))

    def _send(self, effect: act.Send) -> None:
        group = self.group
        message = effect.message
        if group.is_fencing and group.newest_epoch > self.epoch:
            group.count_event("old controller fenced by the broker")
            if self.state.phase is not Phase.SUPERSEDED:
                self.send_input(inputs.LeadershipLost)
            return
        if isinstance(message, (StartConsumingCommand, StopConsumingCommand, StateQuery)):
            group.checker.controller_sent(self, message)
            group.to_consumer(self, message)


_REPEATED = (
    act.WaitUntil,
    act.SaveState,
    act.ListDeployments,
    act.SendHeartbeat,
    act.AskWhoLeads,
)


def _is_acting(before: State, after: State, effects: tuple[act.Effect, ...]) -> bool:
    """Whether a step did something new, other than a query or a repetition."""
    if before.counts.get("commands_resent", 0) != after.counts.get("commands_resent", 0):
        return False
    return any(
        not isinstance(effect, _REPEATED)
        and not (isinstance(effect, act.Send) and isinstance(effect.message, StateQuery))
        for effect in effects
    )
