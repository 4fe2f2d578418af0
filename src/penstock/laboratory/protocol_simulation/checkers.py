"""What must be true of the simulated group, judged from outside.

The checker knows what was really written, which consumers really read and what was really sent. It
trusts neither the controller's state nor the ledger's own check: it follows the chain of commits
itself.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.consumer.core.ownership import Ownership
from penstock.controller.core import effects as act
from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import idle_wanted
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, Phase, State
from penstock.controller.core.step_draft import StepDraft
from penstock.laboratory.protocol_simulation.ledger import Place
from penstock.messages import Message, StartConsumingCommand, StopConsumingEvent
from penstock.model import ConsumerId, Epoch, TopicPartition

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_consumer import SimulatedConsumer
    from penstock.laboratory.protocol_simulation.simulated_controller import SimulatedController
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup


class ViolationError(Exception):
    """An invariant of the group is broken."""

    def __init__(self, name: str, explanation: str) -> None:
        super().__init__(f"{name}: {explanation}")
        self.name = name


class Checker:
    def __init__(self, group: "SimulatedGroup") -> None:
        self.group = group
        self._seen = 0
        self._ends: dict[Place, tuple[int, Epoch]] = {}
        self._fenced: set[tuple[ConsumerId, int]] = set()
        self._used: dict[tuple[TopicPartition, Epoch], tuple[int, int]] = {}
        self._stopped: set[tuple[Place, tuple[ConsumerId, int, Epoch]]] = set()
        self.records = 0

    def after_event(self) -> None:
        """S1, S2, S3: every commit goes on where the chain ends, and epochs never fall along it."""
        commits = self.group.ledger.commits
        for commit in commits[self._seen :]:
            end, epoch = self._ends.get(commit.place, (0, Epoch(0, 0)))
            if commit.start < end:
                raise ViolationError("S1", f"records {commit.start} to {end} of {commit} are twice")
            if commit.start > end:
                raise ViolationError("S1", f"records {end} to {commit.start} before {commit} lack")
            who = (commit.consumer, commit.incarnation, commit.epoch)
            if (commit.place, who) in self._stopped:
                raise ViolationError("S4", f"{commit} came after its writer said it had stopped")
            if commit.epoch < epoch:
                raise ViolationError("S2", f"{commit} is of an older epoch than {epoch}")
            self._ends[commit.place] = (commit.end, commit.epoch)
            self.records += commit.end - commit.start
        self._seen = len(commits)

    def consumer_stepped(self, before: Ownership, after: Ownership) -> None:
        """S5: a consumer never goes back."""
        if (after.controller_epoch, after.plan_number) < (
            before.controller_epoch,
            before.plan_number,
        ):
            raise ViolationError("S5", f"consumer {after.consumer_id} obeyed an older plan")
        if after.owned is before.owned:
            return
        for partition, owned in after.owned.items():
            former = before.owned.get(partition)
            floor = before.ended.get(partition) if former is None else former.epoch
            is_new = former is None or former.epoch != owned.epoch
            if floor is not None and is_new and owned.epoch <= floor:
                raise ViolationError(
                    "S5", f"consumer {after.consumer_id} began {partition} under an old epoch"
                )
            if (
                is_new
                and owned.ending is None
                and owned.epoch.controller_epoch < (before.controller_epoch)
            ):
                raise ViolationError(
                    "S5", f"consumer {after.consumer_id} obeyed an old controller's epoch"
                )

    def consumer_sent(self, message: Message) -> None:
        """A consumer that confirmed a stop has nothing of the partition in flight any more."""
        if isinstance(message, StopConsumingEvent):
            self.after_event()
            for row in message.partitions:
                place = self.group.place_of(row.topic_partition)
                if place is not None:
                    who = (message.sender, message.incarnation, row.partition_epoch)
                    self._stopped.add((place, who))

    def controller_stepped(
        self,
        controller: "SimulatedController",
        before: State,
        after: State,
        effects: Collection[act.Effect],
    ) -> None:
        """S8: no consumer that reads is removed as idle. A deleted one counts as fenced."""
        deleted = [e.consumer for e in effects if isinstance(e, act.DeleteConsumer)]
        if not deleted:
            return
        now = [d for d in after.history if d.at_ms == after.now_ms]
        explanation = [d.explanation for d in now if d.code is Code.CONSUMER_REMOVED]
        for consumer in deleted:
            known = before.consumers.get(consumer)
            is_removed = any(w.startswith(f"consumer {consumer} is removed") for w in explanation)
            for process in self.group.deployment.reached(consumer):
                incarnation = process.ownership.incarnation
                is_meant = known is not None and known.incarnation == incarnation
                reads = [p for p, o in process.ownership.owned.items() if o.ending is None]
                if is_removed and is_meant and reads and self._is_newest(controller):
                    raise ViolationError("S8", f"consumer {consumer} is removed, reading {reads}")
                self._fenced.add((consumer, incarnation))

    def _is_newest(self, controller: "SimulatedController") -> bool:
        return controller.epoch == self.group.newest_epoch

    def sent(self, controller: "SimulatedController", message: Message) -> None:
        """S4 and S5 at the moment a start goes out."""
        if not isinstance(message, StartConsumingCommand):
            return
        receiver = (message.consumer_id, message.incarnation)
        for row in message.partitions:
            partition, epoch = row.topic_partition, row.partition_epoch
            former = self._used.setdefault((partition, epoch), receiver)
            if former != receiver:
                raise ViolationError("S5", f"epoch {epoch} of {partition} is used again")
            if self._is_newest(controller):
                self._nobody_else_reads(partition, epoch, receiver)

    def _nobody_else_reads(
        self, partition: TopicPartition, epoch: Epoch, receiver: tuple[int, int]
    ) -> None:
        for process in self.group.deployment.processes:
            if not process.is_alive:
                continue
            owned = process.ownership.owned.get(partition)
            who = (process.consumer, process.ownership.incarnation)
            if owned is None or who == receiver or who in self._fenced or owned.epoch > epoch:
                continue
            if self._is_former_incarnation(process):
                continue
            raise ViolationError(
                "S4", f"{partition} is started under {epoch} while {who} reads it under {owned}"
            )

    def _is_former_incarnation(self, process: "SimulatedConsumer") -> bool:
        return any(
            other.consumer == process.consumer
            and other.ownership.incarnation > process.ownership.incarnation
            for other in self.group.deployment.processes
        )

    # Liveness

    def why_not_converged(self) -> str | None:
        """None when actual equals desired and the controller is idle."""
        group = self.group
        alive = [c for c in group.controllers if c.is_alive]
        if len(alive) != 1:
            return f"{len(alive)} controllers are alive"
        state = alive[0].state
        reasons = {
            f"the controller is in {state.phase}": state.phase is not Phase.SENTINEL,
            "the controller does not know the partitions": (
                state.partitions.keys() != group.logs.keys()
            ),
            "partitions are under way": bool(state.in_flight or (state.plan and state.plan.open)),
            "partitions are parked": bool(state.parked),
            "a roll-out is under way": state.roll_out is not None,
            "a departure is under way": bool(state.departing),
            "not all consumers are ready": any(
                r.status is not ConsumerStatus.READY for r in state.consumers.values()
            ),
        }
        for reason, holds in reasons.items():
            if holds:
                return reason
        return self._why_not_as_recorded(state)

    def _why_not_as_recorded(self, state: State) -> str | None:
        readers: dict[TopicPartition, list[tuple[int, Epoch]]] = {}
        for process in self.group.deployment.alive():
            for partition, owned in process.ownership.owned.items():
                readers.setdefault(partition, []).append((process.consumer, owned.epoch))
        for partition in self.group.logs:
            holding = state.holdings.get(partition)
            if holding is None or holding.status is not HoldingStatus.OWNED:
                return f"{partition} is not owned"
            if readers.get(partition) != [(holding.consumer, holding.epoch)]:
                found = readers.get(partition)
                return f"{partition} is read by {found}, not as the controller recorded"
        if set(readers) - self.group.logs.keys():
            return "a vanished partition is read"
        idle = [c for c in state.consumers if not state.held_by.get(c)]
        wanted = idle_wanted(StepDraft(state, state.now_ms))
        if len(idle) != wanted:
            return f"{len(idle)} idle consumers instead of {wanted}"
        if set(self.group.deployment.deployed) != set(state.consumers):
            return "the deployments differ from what the controller recorded"
        return None

    def why_not_drained(self) -> str | None:
        """L2: everything that was written is in the lake."""
        for partition, log in self.group.logs.items():
            place = self.group.place_of(partition)
            end = log.end_offset(self.group.clock.now_ms)
            if place is not None and self.group.ledger.read(place) != end:
                return f"{partition} stands at {self.group.ledger.read(place)} of {end}"
        return None
