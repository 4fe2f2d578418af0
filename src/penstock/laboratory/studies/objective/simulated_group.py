"""A simulated group: the live trigger and packer, with backlogs, moves, starts and batches.

Time goes on second by second. What is written waits in its partition until its consumer carries it;
a consumer carries at most its capacity, the oldest first within each partition. A partition that
moves is not read for a while. A new consumer takes its time to start; until then the partitions
stay where they are. The age of what is carried is counted in bytes: so long it had waited, and then
for its batch. Twice it is counted in seconds: after how long nearly all that was written in each
was visible, and how old the oldest record was that was not yet, in any partition.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from penstock.controller.core.objective_changes import FOLLOW_EVERY_MS
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.laboratory.studies.objective.loads import Speeds
from penstock.laboratory.studies.objective.outcome import AGE_BIN_S, AGE_BINS, Outcome
from penstock.laboratory.studies.objective.periodic import PeriodicPredictor
from penstock.laboratory.studies.objective.visible_seconds import visible_after_s
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import PackingAlgorithm, algorithm_named
from penstock.packing.objective import (
    NEARLY_ALL,
    SHARE_DEFAULT,
    Measured,
    Objective,
    reaction_s,
)
from penstock.packing.peaks import Peaks, note
from penstock.packing.rises import Rises, look
from penstock.packing.same_size import same_size_or_larger
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    GroupLoad,
    TriggerMemory,
    after_repack,
    decide,
    problem_for,
)
from penstock.packing.worthwhile import is_worthwhile
from penstock.settings import Settings, changed_settings
from penstock.settings.objective import with_objective
from penstock.settings.units import format_duration

# The share of a batch's time that does not depend on its size, in seconds: batches of 8 s carried
# 27 % more than batches of 0.5 s (docs/development/studies/consumer.md).
BATCH_FIXED_S = 0.15
# What a consumer carries in batches without end. Loads are shares of it.
CONSUMER_BYTES_PER_S = 1e6
# Less than this is nothing.
_NOTHING_BYTES = 1e-3
# The monitor's published speed follows the true one within about three seconds.
MONITOR_LAG_S = 1.5
_PARTS_OF_A_BATCH = 4
_NO_BOUND = {"controller.consumers_max": 500}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the group cannot choose."""

    start_s: int = 10
    # Beside the batch that a stop waits for.
    move_s: float = 1.0
    idle_grace_s: int = 30


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person, or the objective, has chosen."""

    settings: ControllerSettings
    batch_s: float
    batch_period_s: float

    @property
    def capacity(self) -> float:
        """What a consumer carries in batches of this length, in bytes a second."""
        return CONSUMER_BYTES_PER_S * self.batch_s / (self.batch_s + BATCH_FIXED_S)


def choice_for(objective: Objective, measured: Measured | None = None) -> Choice:
    """What follows from an objective, as the product has it."""
    asked = {"objective.freshness": format_duration(objective.freshness_s), **_NO_BOUND}
    settings = with_objective(changed_settings(Settings(), asked), measured)[0]
    return chosen(settings)


def chosen(settings: Settings) -> Choice:
    consumer = settings.consumer
    return Choice(controller_settings(settings), consumer.batch_time, consumer.batch_period)


class SimulatedGroup:
    def __init__(
        self,
        choice: Choice,
        load: Speeds,
        surroundings: Surroundings,
        objective: Objective | None = None,
        predictor: PeriodicPredictor | None = None,
    ) -> None:
        """With an objective the choice follows what is measured."""
        load = load * CONSUMER_BYTES_PER_S
        self.choice, self.surroundings, self.load = choice, surroundings, load
        self.objective, self.predictor = objective, predictor
        self.now_s = 0
        self.names = tuple(TopicPartition("load", n) for n in range(load.shape[1]))
        self.index = {name: n for n, name in enumerate(self.names)}
        self.algorithm: PackingAlgorithm = algorithm_named(choice.settings.algorithm)
        self.measured = load[0].copy()
        self.named: Mapping[TopicPartition, float] = {}
        self.speeds, self.trend = SpeedMemory(), Trend()
        self.memory, self.rises = TriggerMemory(), Rises()
        self.peaks = Peaks()
        # Where the plan wants each partition, and where it is read; 0 is nowhere.
        self.target: Assignment = Assignment()
        self.target_of = np.zeros(len(self.names), dtype=np.int64)
        self.at = np.zeros(len(self.names), dtype=np.int64)
        self.stopped_until = np.zeros(len(self.names))
        self.up_at: dict[ConsumerId, int] = {}
        self.idle_since: dict[ConsumerId, int] = {}
        # What was written until the end of each second, and what is carried of it.
        self.written = np.vstack([np.zeros(load.shape[1]), np.cumsum(load, axis=0)])
        self.carried = np.zeros(load.shape[1])
        self.head = np.zeros(load.shape[1], dtype=np.int64)
        self.carried_until = [self.carried]
        self.batches: list[tuple[Speeds, Speeds]] = []
        self.outcome = Outcome()
        self.counted_from_s = 0

    def run(self, counted_from_s: int = 0) -> Outcome:
        self.counted_from_s = counted_from_s
        for second in range(len(self.load)):
            self.now_s = second
            self._measure()
            self._follow()
            self._decide()
            self._move()
            self._carry(is_counted=second >= counted_from_s)
            self._pay(is_counted=second >= counted_from_s)
        self.outcome.visible_after_s = self._visible_after_s()[counted_from_s:]
        return self.outcome

    def _visible_after_s(self) -> list[float]:
        batch_s, cycle_s = (np.stack(parts) for parts in zip(*self.batches, strict=True))
        share = SHARE_DEFAULT if self.objective is None else self.objective.share
        return visible_after_s(self.written, np.stack(self.carried_until), batch_s, cycle_s, share)

    # The controller

    def _measure(self) -> None:
        policy, now_ms = self.choice.settings.policy, self.now_s * 1_000
        self.measured += (self.load[self.now_s] - self.measured) * (1 - exp(-1 / MONITOR_LAG_S))
        named = dict(zip(self.names, self.measured.tolist(), strict=True))
        self.speeds = remember(
            self.speeds, named, now_ms, policy.over_capacity_ms, policy.scale_down_period_ms
        )
        if policy.look_ahead_ms:
            self.trend = observe(self.trend, self.speeds.established, now_ms)
        self.named = named
        if self.predictor is not None:
            self.predictor.observe(self.now_s, self.measured)

    def _follow(self) -> None:
        """As `controller.core.objective_changes` does."""
        if self.objective is None:
            return
        held = self.target
        every_ms = round(reaction_s(self.objective) * 1_000)
        now_ms, capacity = self.now_s * 1_000, self.choice.capacity
        self.rises = look(self.rises, self.named, self.speeds, held, capacity, now_ms, every_ms)
        written = {self.names[0].topic: sum(self.speeds.established.values())}
        self.peaks = note(self.peaks, written, now_ms)
        if self.now_s and now_ms % FOLLOW_EVERY_MS == 0:
            measured = Measured(
                float(self.surroundings.start_s),
                self.rises.not_exceeded(self.objective.rises_covered),
                self.rises.not_exceeded(NEARLY_ALL),
                self.peaks.return_after_s(),
            )
            self.choice = choice_for(self.objective, measured)

    def behind(self) -> Speeds:
        found: Speeds = np.maximum(0.0, self.written[self.now_s] - self.carried)
        return found

    def _extra(self, behind: Speeds) -> Speeds:
        """What the backlogs add to the load, as `controller.core.backlog` has it."""
        settings = self.choice.settings
        wanted: Speeds = behind * 1_000 / max(1, settings.catch_up_ms)
        total = float(wanted.sum())
        most = settings.catch_up_share * sum(self.speeds.established.values())
        found: Speeds = wanted * min(1.0, most / total) if total else wanted
        return found

    def _expected(self) -> Speeds:
        expected = None if self.predictor is None else self.predictor.expected(self.now_s)
        found: Speeds = self.measured if expected is None else np.maximum(self.measured, expected)
        return found

    def _is_behind(self, behind: Speeds) -> bool:
        settings, working = self.choice.settings, len(self.target)
        tolerated = settings.behind_tolerated_ms / 1_000 * self.choice.capacity * (working - 1)
        return float(behind.sum()) > tolerated

    def _nothing_to_decide(self) -> bool:
        """What the trigger would say without looking at every partition: it takes long."""
        memory, period_ms = self.memory, self.choice.settings.policy.scale_down_period_ms
        looked_ms, behind = memory.looked_for_fewer_at_ms, self.behind()
        if looked_ms is None or memory.over_since_ms or not self.target_of.all():
            return False
        is_due = self.now_s * 1_000 - looked_ms >= period_ms
        if is_due or self._is_behind(behind) != memory.was_behind:
            return False
        load = np.bincount(self.target_of, self._expected() + self._extra(behind))
        return bool((load <= self.choice.capacity).all())

    def _group_load(self) -> GroupLoad:
        """As `controller.core.load` has it."""
        capacity, behind = self.choice.capacity, self.behind()
        established, extra = self.speeds.established, self._extra(behind).tolist()
        expected = self._expected().tolist()
        load = {p: established[p] + extra[n] for p, n in self.index.items()}
        if self.predictor is not None:
            load = {p: max(load[p], expected[n]) for p, n in self.index.items()}
        by_consumer: dict[ConsumerId, float] = {}
        for partition, consumer in self.target.owners.items():
            n = self.index[partition]
            by_consumer[consumer] = by_consumer.get(consumer, 0.0) + expected[n] + extra[n]
        return GroupLoad(
            current=self.target,
            load_bytes_per_s=load,
            load_by_consumer=by_consumer,
            capacity_by_consumer=dict.fromkeys(by_consumer, capacity),
            unread=tuple(p for p in self.names if p not in self.target.owners),
            highest_bytes_per_s=self.speeds.highest,
            is_behind=self._is_behind(behind),
        )

    def _decide(self) -> None:
        if self._nothing_to_decide():
            return
        settings, now_ms = self.choice.settings, self.now_s * 1_000
        policy = replace(settings.policy, capacity_bytes_per_s=self.choice.capacity)
        group = self._group_load()
        self.memory, decision = decide(policy, self.memory, group, now_ms)
        if not decision.repack:
            return
        ahead = forecast(self.trend, policy.look_ahead_ms) if policy.look_ahead_ms else None
        packed = self.algorithm.pack(problem_for(policy, group, decision.reason, ahead)).assignment
        after = same_size_or_larger(policy, group, decision.reason, packed)
        changed = after != self.target and is_worthwhile(policy, group, decision.reason, after)
        if changed:
            self.target = self._with_warm_consumers(after)
            owners = self.target.owners
            self.target_of = np.array([owners[name] for name in self.names], dtype=np.int64)
        self.memory = after_repack(self.memory, decision.reason, now_ms, changed=changed)

    def _with_warm_consumers(self, after: Assignment) -> Assignment:
        """A spare takes the place of a new consumer; the others are started."""
        working = {c for c, held in after.items() if held}
        new = sorted(working - self.up_at.keys())
        spares = sorted(
            (c for c in self.up_at if c not in working), key=lambda c: (self.up_at[c], c)
        )
        renamed = dict(zip(new, spares, strict=False))
        for consumer in new[len(spares) :]:
            self._start(consumer)
        return Assignment({renamed.get(c, c): held for c, held in after.items() if held})

    def _start(self, consumer: ConsumerId) -> None:
        is_first = not self.up_at
        self.up_at[consumer] = self.now_s + (0 if is_first else self.surroundings.start_s)
        self.outcome.starts += self.now_s >= self.counted_from_s

    def _move(self) -> None:
        """Partitions whose next consumer is up leave the former one."""
        for n in np.nonzero(self.at != self.target_of)[0].tolist():
            consumer = ConsumerId(int(self.target_of[n]))
            if self.up_at[consumer] > self.now_s:
                continue
            if self.at[n]:
                self.outcome.moves += 1
                self.stopped_until[n] = (
                    self.now_s + self.surroundings.move_s + self.choice.batch_s / 2
                )
            self.at[n] = consumer

    # The consumers

    def _carry(self, *, is_counted: bool) -> None:
        """One second of carrying: each consumer shares its capacity by what waits."""
        end = self.now_s + 1
        reads = np.clip(end - self.stopped_until, 0.0, 1.0)
        waiting = (self.written[end] - self.carried) * (reads > 0)
        number = int(self.at.max()) + 1
        wanted = np.bincount(self.at, waiting, minlength=number)
        capacity = self.choice.capacity
        part = np.minimum(1.0, capacity / np.maximum(wanted, _NOTHING_BYTES))
        part[0] = 0.0
        now = waiting * part[self.at] * reads
        busy = np.minimum(1.0, wanted / capacity)
        before = self.carried
        self.carried = before + now
        written_s = (self._written_at(before) + self._written_at(self.carried)) / 2
        batch_s, cycle_s = self._batches(busy[self.at])
        self.carried_until.append(self.carried)
        self.batches.append((batch_s, cycle_s))
        if is_counted:
            self._count(now, end - written_s, batch_s, cycle_s)
            # What is not yet carried waits for a whole cycle and its batch at most, so this is the
            # age just before it is visible: the highest in the course of a batch.
            waits_s = end - self._written_at(self.carried)
            self.outcome.oldest_s.append(float((waits_s + batch_s + cycle_s).max()))

    def _written_at(self, amount: Speeds) -> Speeds:
        """When the byte at this place of each log was written, in seconds."""
        columns = np.arange(len(amount))
        while True:
            ahead = self.head + 1
            is_past = (ahead <= self.now_s) & (
                self.written[np.minimum(ahead, self.now_s + 1), columns] <= amount + _NOTHING_BYTES
            )
            if not is_past.any():
                break
            self.head = self.head + is_past
        low, high = self.written[self.head, columns], self.written[self.head + 1, columns]
        within = np.clip((amount - low) / np.maximum(high - low, _NOTHING_BYTES), 0.0, 1.0)
        found: Speeds = self.head + within
        return found

    def _batches(self, busy: Speeds) -> tuple[Speeds, Speeds]:
        """How long a batch takes, and the time from the begin of one to the begin of the next."""
        choice = self.choice
        full_s = choice.batch_s
        alone_s = np.maximum(choice.batch_period_s, BATCH_FIXED_S / np.maximum(1 - busy, 1e-3))
        cycle_s = np.minimum(np.maximum(full_s, choice.batch_period_s), alone_s)
        batch_s = np.minimum(full_s, BATCH_FIXED_S + busy * cycle_s)
        return batch_s, cycle_s

    def _count(self, amount: Speeds, waited_s: Speeds, batch_s: Speeds, cycle_s: Speeds) -> None:
        """A batch takes what came since the last one began; it is visible when the batch ends."""
        for part in range(_PARTS_OF_A_BATCH):
            age_s = waited_s - 0.5 + batch_s + cycle_s * (part + 0.5) / _PARTS_OF_A_BATCH
            bins = np.minimum(AGE_BINS - 1, np.maximum(0, age_s / AGE_BIN_S).astype(np.int64))
            self.outcome.ages += np.bincount(bins, amount / _PARTS_OF_A_BATCH, minlength=AGE_BINS)

    def _pay(self, *, is_counted: bool) -> None:
        """Everybody who works, starts or waits warm is paid for; the idle go after a grace."""
        reading, wanted = set(self.at[self.at > 0].tolist()), set(self.target)
        idle = [c for c in self.up_at if c not in reading and c not in wanted]
        spares = self.choice.settings.spare_consumers
        for _ in range(spares - len(idle)):
            number = next(n for n in range(1, 10_000) if n not in self.up_at)
            self._start(ConsumerId(number))
        self.idle_since = {c: self.idle_since.get(c, self.now_s) for c in idle}
        for consumer in sorted(idle, reverse=True)[: max(0, len(idle) - spares)]:
            if self.now_s - self.idle_since[consumer] >= self.surroundings.idle_grace_s:
                del self.up_at[consumer], self.idle_since[consumer]
                self.outcome.ends += is_counted
        if is_counted:
            self.outcome.consumer_seconds += len(self.up_at)
            self.outcome.bound_consumer_seconds += (
                self.load[self.now_s].sum() / CONSUMER_BYTES_PER_S
            )
            self.outcome.consumers.append(len(self.up_at))
            self.outcome.written.append(float(self.load[self.now_s].sum()))
