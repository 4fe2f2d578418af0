"""The whole protocol in one thread on a virtual clock: first with faults, then without.

While faults are on, safety is checked after every event. Then the faults end, everything that was
paused goes on, and the group must converge within its bound, carry every record and stay stable.
All decisions are made by the real code of controller and consumers.
"""

import random
from collections import Counter
from collections.abc import Sequence

from penstock.controller.core import effects as act
from penstock.controller.core.inputs import (
    HeartbeatReturned,
    Packed,
    PackingFailed,
    SpeedsMeasured,
)
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.settings import controller_settings
from penstock.controller.core.state import State
from penstock.laboratory.protocol_simulation.checkers import Checker
from penstock.laboratory.protocol_simulation.ledger import Ledger, LedgerKey
from penstock.laboratory.protocol_simulation.lossy_topic import NO_FAULTS, LossyTopic
from penstock.laboratory.protocol_simulation.scenario import SETTINGS, Scenario
from penstock.laboratory.protocol_simulation.simulated_consumer import (
    BATCH_MS,
    SimulatedConsumer,
)
from penstock.laboratory.protocol_simulation.simulated_controller import SimulatedController
from penstock.laboratory.protocol_simulation.simulated_deployment import SimulatedDeployment
from penstock.laboratory.protocol_simulation.virtual_clock import VirtualClock
from penstock.messages import ControllerHeartbeat, FromConsumer, Message
from penstock.model import ConsumerId, OffsetRange, TopicPartition
from penstock.packing import algorithm_named
from penstock.settings import changed_settings

MEASURE_MS = 1_000
EVENTS_MAX = 400_000
# Of the capacity of the largest group: what faults may raise the load to. It may be too much.
LOAD_SHARE_MAX = 1.3
ABSURD_BYTES_PER_S = 1e18
LATE_MS = 4_000
# By how much the log of the controller's partition is longer than its newest epoch.
LOG_END_AHEAD = 1_000


class SimulatedLog:
    """One partition of a data topic: its end offset and its write speed."""

    def __init__(self, topic_id: str, records_per_s: float, since_ms: int) -> None:
        self.topic_id = topic_id
        self.records_per_s = records_per_s
        self._since_ms = since_ms
        self._before = 0

    def end_offset(self, now_ms: int) -> int:
        return self._before + int((now_ms - self._since_ms) * self.records_per_s / 1_000)

    def set_speed(self, now_ms: int, records_per_s: float) -> None:
        self._before, self._since_ms = self.end_offset(now_ms), now_ms
        self.records_per_s = records_per_s


class SimulatedGroup:
    def __init__(self, scenario: Scenario, *, ledger: Ledger | None = None) -> None:
        self.scenario = scenario
        self.chance = random.Random(scenario.seed + 1)
        self.clock = VirtualClock()
        self.chosen = changed_settings(
            SETTINGS,
            {
                "controller.consumers_max": scenario.consumers_max,
                **({"packing.capacity": "auto"} if scenario.capacity_is_measured else {}),
                "controller.catch_up_share": scenario.catch_up_share,
                "controller.growth_settle": f"{scenario.growth_settle_s}s",
                "controller.patience": f"{scenario.patience_s}s",
            },
        )
        self.settings = controller_settings(self.chosen)
        self.capacity_bytes_per_s = controller_settings(SETTINGS).policy.capacity_bytes_per_s
        # Of a consumer's capacity: where consumers are slow, no batch may outlast its stop.
        self.batch_s = 0.5 if scenario.carried_by_one or scenario.carried_by_all else 8.0
        self.ledger = ledger or Ledger()
        self.checker = Checker(self)
        self.topic = LossyTopic(self.clock, self.chance, scenario.delivery_faults)
        # Heartbeats have draws of their own, so that the course of the others stays the same.
        self._heartbeats = LossyTopic(
            self.clock, random.Random(scenario.seed + 2), scenario.delivery_faults
        )
        self.topic.on_harm = self._harm
        self.lake_away_until_ms = 0
        self.spark_away_until_ms = 0
        # Topics whose tables cannot be read or written.
        self.unreadable_tables: set[str] = set()
        self.long_batches_until_ms = 0
        self.long_batch_ms = 0
        # When the limit that all consumers share is free for one more batch.
        self._limit_free_ms = 0.0
        self.deployment = SimulatedDeployment(self)
        self.fault_counts: Counter[str] = Counter()
        self.has_faults = True
        self.is_fencing = scenario.is_fenced_by_broker
        self.restarts_consumers = scenario.restarts_consumers
        self.logs: dict[TopicPartition, SimulatedLog] = {}
        self.monitor_silent_until_ms = 0
        self.monitor_late_until_ms = 0
        self.lies_next: list[float | None] = []
        self.packer_fails_next = 0
        self.newest_epoch = 0
        self.topics_made = 0
        self.controllers: list[SimulatedController] = []
        self._disk: list[State | bytes] = []
        self._undelivered: list[FromConsumer] = []
        names = [f"topic-{number}" for number in range(len(scenario.topics))]
        # What a trial has shown before the start; none where the capacity is set.
        self.calibrated = dict.fromkeys(
            names if scenario.capacity_is_measured else (), self.capacity_bytes_per_s
        )
        for name, partitions in zip(names, scenario.topics, strict=True):
            self.make_topic(name, partitions)
        self.start_controller()
        self.clock.after(50, self._measure)

    def count_event(self, what: str) -> None:
        self.fault_counts[what] += 1

    # Data topics

    def make_topic(self, topic: str, partitions: int) -> None:
        """A re-created topic gets a new id, and so starts at 0 in the ledger."""
        self.topics_made += 1
        topic_id = f"id-{self.topics_made:019d}"
        for number in range(partitions):
            self.logs[TopicPartition(topic, number)] = SimulatedLog(
                topic_id, self._speed(), self.clock.now_ms
            )

    def grow_topic(self, topic: str, by: int) -> None:
        mine = [p for p in self.logs if p.topic == topic]
        if mine:
            topic_id = self.logs[mine[0]].topic_id
            for number in range(len(mine), len(mine) + by):
                speed = max(1.0, min(self._speed(), self.free_bytes_per_s()))
                log = SimulatedLog(topic_id, speed, self.clock.now_ms)
                self.logs[TopicPartition(topic, number)] = log

    def delete_topic(self, topic: str) -> None:
        self.logs = {p: log for p, log in self.logs.items() if p.topic != topic}

    def free_bytes_per_s(self, without: TopicPartition | None = None) -> float:
        """How much faster the logs may still become. Some of it may fit no plan."""
        others = sum(log.records_per_s for p, log in self.logs.items() if p != without)
        most = self.capacity_bytes_per_s * self.settings.consumers_max * LOAD_SHARE_MAX
        return most - others

    def _speed(self) -> float:
        """Such that the group can carry all of it."""
        total = self.capacity_bytes_per_s * self.settings.consumers_max
        mean = total * self.scenario.load_share / max(1, sum(self.scenario.topics)) * 0.8
        most = self.capacity_bytes_per_s * 0.6
        return min(most, self.chance.uniform(0.2, 1.8) * mean)

    def ledger_key(self, partition: TopicPartition) -> LedgerKey | None:
        log = self.logs.get(partition)
        return None if log is None else (log.topic_id, partition.partition)

    def end_offset(self, partition: TopicPartition) -> int:
        log = self.logs.get(partition)
        return 0 if log is None else log.end_offset(self.clock.now_ms)

    def _measure(self) -> None:
        self.clock.after(MEASURE_MS, self._measure)
        if self.clock.now_ms < self.monitor_silent_until_ms:
            return
        speeds: dict[TopicPartition, float | None] = {
            p: log.records_per_s for p, log in self.logs.items()
        }
        if self.lies_next:
            lie = self.lies_next.pop()
            speeds = {} if lie is None else dict.fromkeys(speeds, lie)
        late_ms = LATE_MS if self.clock.now_ms < self.monitor_late_until_ms else 0
        for controller in self.controllers:
            controller.send_input(
                lambda now: SpeedsMeasured(now, speeds, age_ms=late_ms), 5 + late_ms
            )

    def cost_of(self, topic: str) -> float:
        """How much longer a record of the topic takes than usual ones."""
        costs = self.scenario.topic_costs
        return costs[int(topic.rpartition("-")[2]) % len(costs)] if costs else 1.0

    def batch_ms(self, ranges: Sequence[OffsetRange]) -> int:
        """How long a batch takes: consumers are as fast as they are, and may share a limit."""
        log_bytes = round(sum(len(one) * self.cost_of(one.partition.topic) for one in ranges))
        usual_ms = self.chance.randint(*BATCH_MS)
        capacity, limits = self.capacity_bytes_per_s, []
        if self.scenario.carried_by_one:
            limits.append(self.scenario.carried_by_one * capacity)
        if self.scenario.lasting_load and self.scenario.carried_by_all:
            usual_ms = max(usual_ms, self._shared_batch_ms(log_bytes))
        elif self.scenario.carried_by_all:
            at_work = sum(1 for process in self.deployment.alive() if process.is_carrying)
            limits.append(self.scenario.carried_by_all * capacity / max(1, at_work))
        if not limits:
            return usual_ms
        return max(usual_ms, round(log_bytes * 1_000 / min(limits)))

    def _shared_batch_ms(self, log_bytes: int) -> int:
        """One batch after the other passes what all share: more consumers never carry more."""
        carried_ms = log_bytes * 1_000 / (self.scenario.carried_by_all * self.capacity_bytes_per_s)
        self._limit_free_ms = max(self.clock.now_ms, self._limit_free_ms) + carried_ms
        return round(self._limit_free_ms - self.clock.now_ms)

    # Controllers

    def start_controller(self) -> SimulatedController:
        self.newest_epoch += 1
        saved: State | None = None
        if self._disk:
            last = self._disk[-1]
            raw = last if isinstance(last, bytes) else encode_state(last)
            outcome = decode_state(raw, self.chosen)
            saved = outcome if isinstance(outcome, State) else None
        controller = SimulatedController(self, self.newest_epoch, saved)
        self.controllers = [c for c in self.controllers if c.is_alive] + [controller]
        undelivered, self._undelivered = self._undelivered, []
        for message in undelivered:
            controller.receive(message)
        return controller

    def controller_ended(self) -> None:
        """Restart the controller later, unless another one is alive by then."""

        def restart() -> None:
            if not any(c.is_alive for c in self.controllers):
                self.start_controller()

        self.clock.after(self.chance.randint(200, 2_000), restart)

    def save(self, state: State) -> None:
        """Keep the state for the next start, and the one before for a fault that restores it.

        It is encoded only when read: most saved states are never read.
        """
        self._disk = [*self._disk[-1:], state]

    def lose_state_file(self, *, restore_old: bool) -> None:
        self._disk = self._disk[:1] if restore_old else [b"\x00\x01 not a state"]

    @property
    def leader(self) -> SimulatedController | None:
        alive = [c for c in self.controllers if c.is_alive]
        return max(alive, key=lambda c: c.epoch, default=None)

    @property
    def log_end(self) -> int:
        """The end of the claims' log: beyond all epochs there are, which are offsets in it."""
        return self.newest_epoch + LOG_END_AHEAD

    def pack(self, controller: SimulatedController, effect: act.Pack) -> None:
        number, problem = effect.number, effect.problem
        delay = self.chance.randint(5, 300)
        if self.packer_fails_next > 0:
            self.packer_fails_next -= 1
            controller.send_input(lambda now: PackingFailed(now, number, "injected fault"), delay)
            return
        packing = algorithm_named(effect.algorithm).pack(problem)
        controller.send_input(lambda now: Packed(now, number, packing), delay)

    # Messages

    def to_consumer(self, controller: SimulatedController, message: Message) -> None:
        consumer = ConsumerId(message.mailbox)

        def deliver(arrived: Message) -> None:
            for process in self.deployment.reached(consumer):
                process.deliver(arrived)

        self.topic.carry(message, (controller.epoch, consumer, message.topic_role), deliver)

    def to_controller(self, process: SimulatedConsumer, message: Message) -> None:
        def deliver(arrived: Message) -> None:
            if not isinstance(arrived, FromConsumer):
                raise TypeError(f"a consumer sent {arrived.event_type}")
            alive = [c for c in self.controllers if c.is_alive]
            for controller in alive:
                controller.receive(arrived)
            if not alive:
                self._undelivered.append(arrived)

        self.checker.consumer_sent(message)
        self.topic.carry(message, (process.consumer, process.ownership.incarnation), deliver)

    def to_itself(self, controller: SimulatedController, message: ControllerHeartbeat) -> None:
        """A heartbeat comes back through the log, like everything that consumers write."""
        epoch, number = message.controller_epoch, message.heartbeat_number

        def deliver(_: Message) -> None:
            controller.send_input(lambda now: HeartbeatReturned(now, epoch, number))

        self._heartbeats.carry(message, epoch, deliver)

    def let_the_broker_go(self, until_ms: int) -> None:
        for topic in (self.topic, self._heartbeats):
            topic.away_until_ms = max(topic.away_until_ms, until_ms)

    def _harm(self, lane: object) -> None:
        """A message from or to a consumer was lost or late, as in no Kafka."""
        for process in self.deployment.alive():
            from_it = (process.consumer, process.ownership.incarnation)
            to_it = isinstance(lane, tuple) and len(lane) == 3 and lane[1] == process.consumer
            if lane == from_it or to_it:
                process.harm()

    def is_answer_lost(self) -> bool:
        """Whether an answer of the deployment is lost."""
        return self.has_faults and self.chance.random() < self.topic.delivery_faults.lost

    def consumer_ended(self, process: SimulatedConsumer) -> None:
        self.count_event("consumer shut down")
        self.deployment.crashed(process)

    # After the faults

    def end_faults(self) -> None:
        self.has_faults = False
        self.topic.delivery_faults = self._heartbeats.delivery_faults = NO_FAULTS
        self.topic.away_until_ms = self._heartbeats.away_until_ms = 0
        self.lake_away_until_ms = self.spark_away_until_ms = self.long_batches_until_ms = 0
        self.unreadable_tables.clear()
        self.deployment.end_slow_starts()
        self.monitor_silent_until_ms = self.monitor_late_until_ms = 0
        self.lies_next = []
        self.packer_fails_next = 0
        deployment = self.deployment
        deployment.unreachable_next = deployment.creations_to_fail = deployment.never_up_next = 0
        deployment.listings_to_fail = 0
        for controller in self.controllers:
            controller.effects_until_crash = None
            controller.resume()
        for process in deployment.alive():
            process.hangs_next = process.fails_next = False
            process.resume()
        self.clock.after(3_000, deployment.end_deleted_processes)

    def run_until(self, time_ms: int) -> None:
        self.clock.run_until(time_ms, self.checker.after_event, EVENTS_MAX)
