"""Checks the invariants of a simulated group from outside.

The checker sees what was written, which consumers read and what was sent. It uses neither the
controller's records nor the ledger's own check: it follows the chain of commits itself. The names
S1, L1 and so on are those of the documented invariants.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.consumer.core.effects import RangeToCarry
from penstock.consumer.core.ownership import Ownership
from penstock.controller.core import effects as act
from penstock.controller.core.decisions import Code, Decision
from penstock.controller.core.housekeeping import idle_wanted
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, Phase, State
from penstock.controller.core.step_draft import StepDraft
from penstock.laboratory.protocol_simulation.ledger import LedgerKey
from penstock.messages import Message, StartConsumingCommand, StopConsumingEvent, StopReason
from penstock.model import ConsumerId, Epoch, TopicPartition

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_consumer import SimulatedConsumer
    from penstock.laboratory.protocol_simulation.simulated_controller import SimulatedController
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup


class ViolationError(Exception):
    """An invariant of the simulated group is broken."""

    def __init__(self, name: str, explanation: str) -> None:
        super().__init__(f"{name}: {explanation}")
        self.name = name


class Checker:
    def __init__(self, group: "SimulatedGroup") -> None:
        self.group = group
        self._seen = 0
        self._ends: dict[LedgerKey, tuple[int, Epoch]] = {}
        self._fenced: set[tuple[ConsumerId, int]] = set()
        self._used: dict[tuple[TopicPartition, Epoch], tuple[int, int]] = {}
        self._stopped: set[tuple[LedgerKey, tuple[ConsumerId, int, Epoch]]] = set()
        self.records = 0

    def after_event(self) -> None:
        """Every commit starts where the last one ended, and epochs never fall (S1, S2, S3)."""
        commits = self.group.ledger.commits
        if len(commits) == self._seen:
            return
        for commit in commits[self._seen :]:
            end, epoch = self._ends.get(commit.key, (0, Epoch(0, 0)))
            if commit.start < end:
                raise ViolationError("S1", f"{commit} repeats records {commit.start} to {end}")
            if commit.start > end:
                raise ViolationError("S1", f"{commit} skips records {end} to {commit.start}")
            writer = (commit.consumer, commit.incarnation, commit.epoch)
            if (commit.key, writer) in self._stopped:
                raise ViolationError("S4", f"{commit} came after its writer reported its stop")
            if commit.epoch < epoch:
                raise ViolationError("S2", f"{commit} has an older epoch than {epoch}")
            self._ends[commit.key] = (commit.end, commit.epoch)
            self.records += commit.end - commit.start
        self._seen = len(commits)

    def controller_steps_down(self, controller: "SimulatedController") -> None:
        """Only one that the broker has fenced does (S15)."""
        if controller.epoch == self.group.newest_epoch:
            raise ViolationError("S15", "the leading controller stepped down")

    def consumer_stepped(self, before: Ownership, after: Ownership) -> None:
        """A consumer never obeys an older plan or epoch (S5)."""
        if (after.controller_epoch, after.plan_number) < (
            before.controller_epoch,
            before.plan_number,
        ):
            raise ViolationError("S5", f"consumer {after.consumer_id} obeyed an older plan")
        if after.controller_epoch > self.group.newest_epoch:
            raise ViolationError("S15", f"consumer {after.consumer_id} obeyed a forged epoch")
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
        """A consumer that reports a stop has no commit in flight (S4), and names what is true.

        Simulated logs lose no records: one that ends below the ledger is that of a new topic (S10).
        """
        if isinstance(message, StopConsumingEvent):
            self.after_event()
            for row in message.partitions:
                if row.reason is StopReason.LOG_TRUNCATED:
                    lost = f"{row.topic_partition} was stopped for a loss that did not happen"
                    raise ViolationError("S10", lost)
                key = self.group.ledger_key(row.topic_partition)
                if key is not None:
                    writer = (message.sender, message.incarnation, row.partition_epoch)
                    self._stopped.add((key, writer))

    def batch_begins(self, process: "SimulatedConsumer", ranges: Collection[RangeToCarry]) -> None:
        """One batch at a time, with Spark, and only of what is known to be unread (S13)."""
        consumer = f"consumer {process.consumer}"
        if process.is_carrying:
            raise ViolationError("S13", f"{consumer} begins a batch while another one runs")
        if not process.has_spark:
            raise ViolationError("S13", f"{consumer} begins a batch without Spark")
        for one in ranges:
            if one.range.partition in process.outcome_unknown:
                raise ViolationError(
                    "S13", f"{consumer} reads {one.range} before the ledger, after a lost outcome"
                )

    def consumer_ends(self, process: "SimulatedConsumer") -> None:
        """A consumer that ends in order has no batch in flight (S4)."""
        if process.is_carrying:
            raise ViolationError("S4", f"consumer {process.consumer} ends while its batch runs")

    def controller_stepped(
        self,
        controller: "SimulatedController",
        before: State,
        after: State,
        effects: Collection[act.Effect],
    ) -> None:
        """No consumer that reads is removed as idle (S8). A deleted one counts as fenced."""
        deleted = [e.consumer for e in effects if isinstance(e, act.DeleteConsumer)]
        if not deleted:
            return
        now = [d for d in after.history if d.at_ms == after.now_ms]
        self._check_no_healthy_is_fenced(controller, before, now)
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

    def _check_no_healthy_is_fenced(
        self, controller: "SimulatedController", before: State, decisions: Collection[Decision]
    ) -> None:
        """Nobody is fenced to whom nothing happened but what happened to all (S14)."""
        fenced = [d for d in decisions if d.code is Code.CONSUMER_FENCED]
        if not self._is_newest(controller):
            return
        deployment = self.group.deployment
        for consumer, known in before.consumers.items():
            why = [d for d in fenced if d.explanation.startswith(f"consumer {consumer} ")]
            healthy = [
                process
                for process in deployment.reached(consumer)
                if not process.is_harmed and known.incarnation in {0, process.ownership.incarnation}
            ]
            is_starting = consumer in deployment.starting and not known.incarnation
            if why and (healthy or is_starting):
                raise ViolationError("S14", f"a healthy consumer is fenced: {why[0].explanation}")

    def _is_newest(self, controller: "SimulatedController") -> bool:
        return controller.epoch == self.group.newest_epoch

    def controller_sent(self, controller: "SimulatedController", message: Message) -> None:
        """When a start is sent: no other reader (S4), and no epoch is used twice (S5)."""
        if not isinstance(message, StartConsumingCommand):
            return
        receiver = (message.consumer_id, message.incarnation)
        for row in message.partitions:
            partition, epoch = row.topic_partition, row.partition_epoch
            former = self._used.setdefault((partition, epoch), receiver)
            if former != receiver:
                raise ViolationError("S5", f"epoch {epoch} of {partition} is used again")
            if self._is_newest(controller):
                self._check_no_other_reader(partition, epoch, receiver)

    def _check_no_other_reader(
        self, partition: TopicPartition, epoch: Epoch, receiver: tuple[int, int]
    ) -> None:
        for process in self.group.deployment.processes:
            if not process.is_alive:
                continue
            owned = process.ownership.owned.get(partition)
            reader = (process.consumer, process.ownership.incarnation)
            if owned is None or reader == receiver or reader in self._fenced or owned.epoch > epoch:
                continue
            if self._is_former_incarnation(process):
                continue
            raise ViolationError(
                "S4", f"{partition} is started under {epoch} while {reader} reads it under {owned}"
            )

    def _is_former_incarnation(self, process: "SimulatedConsumer") -> bool:
        return any(
            other.consumer == process.consumer
            and other.ownership.incarnation > process.ownership.incarnation
            for other in self.group.deployment.processes
        )

    # Liveness

    def why_not_converged(self) -> str | None:
        """None when the actual state equals the planned one and the controller is idle."""
        group = self.group
        alive = [c for c in group.controllers if c.is_alive]
        if len(alive) != 1:
            return f"{len(alive)} controllers are alive"
        state = alive[0].state
        reasons = {
            f"the controller is in {state.phase}": state.phase is not Phase.SENTINEL,
            "the controller does not know the partitions": (
                state.write_speeds.keys() != group.logs.keys()
            ),
            "partitions are moving": bool(state.in_flight or (state.plan and state.plan.open)),
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
                return f"{partition} is read by {readers.get(partition)}, not as recorded"
        if set(readers) - self.group.logs.keys():
            return "a vanished partition is read"
        idle = [c for c in state.consumers if not state.held_by.get(c)]
        wanted = idle_wanted(StepDraft(state, state.now_ms))
        if len(idle) != wanted:
            return f"{len(idle)} idle consumers instead of {wanted}"
        if set(self.group.deployment.deployed) != set(state.consumers):
            return "the deployments differ from the controller's records"
        return None

    def why_not_drained(self) -> str | None:
        """None when everything that was written is in the lake (L2)."""
        for partition, log in self.group.logs.items():
            key = self.group.ledger_key(partition)
            end = log.end_offset(self.group.clock.now_ms)
            if key is not None and self.group.ledger.read(key) != end:
                return f"{partition} is at {self.group.ledger.read(key)} of {end}"
        return None
