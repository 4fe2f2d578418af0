"""How long one step of the controller takes, invariants included.

`python benchmarks/controller_step.py` prints a table; the exit code is 1 when a bound is broken.
The bounds are the project's: 1 ms at 200 partitions, 50 ms at 10,000 partitions and 500 consumers,
reassignment (making a plan of everything) aside, which is measured and shown as well. Processor
time is measured, not the wall clock: what else runs on the machine does not count.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

from penstock.controller.core import inputs
from penstock.controller.core.effects import Pack, Send
from penstock.controller.core.state import Phase, State
from penstock.controller.core.state_machine import Machine
from penstock.messages import (
    PARTITIONS_PER_MESSAGE_MAX,
    ConsumerPhase,
    ConsumerReport,
    ReportedPartition,
    StartConsumingCommand,
    StartConsumingEvent,
    StartedPartition,
    StopConsumingCommand,
    StopConsumingEvent,
    StoppedPartition,
)
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing
from penstock.settings import Settings, changed_settings

ROUNDS = 7
Rows = dict[int, list[tuple[TopicPartition, str]]]


class Group:
    """A group of a size, driven through the machine as consumers would."""

    def __init__(self, partitions: int, consumers: int) -> None:
        self.partitions = [TopicPartition("orders", number) for number in range(partitions)]
        self.consumers = [ConsumerId(number + 1) for number in range(consumers)]
        self.settings = changed_settings(
            Settings(),
            {
                "packing.capacity": f"{partitions / consumers * 2.0}B/s",
                "controller.spare_consumers": 0,
                "controller.consumers_max": consumers,
                "controller.creations_per_minute_max": consumers,
                "controller.silence": "1000000s",
            },
        )
        self.machine = Machine()
        self.sequence = 0
        self.state, _ = self.machine.begin(controller_epoch=1, settings=self.settings, now_ms=0)
        for _ in range(2):
            self.give(inputs.DeploymentsListed(0, {}))
        self.speeds: dict[TopicPartition, float | None] = dict.fromkeys(self.partitions, 1.0)
        self.give(inputs.SpeedsMeasured(0, self.speeds))

    def give(self, given: inputs.Input) -> tuple[object, ...]:
        self.state, effects = self.machine.step(self.state, given)
        return effects

    def pack(self, shift: int) -> Packing:
        owned: dict[ConsumerId, list[TopicPartition]] = {c: [] for c in self.consumers}
        for number, partition in enumerate(self.partitions):
            owned[self.consumers[(number + shift) % len(self.consumers)]].append(partition)
        return Packing(Assignment(owned))

    def packed(self, shift: int) -> inputs.Packed:
        return inputs.Packed(self.state.now_ms, self.state.packing_number, self.pack(shift))

    def head(self, consumer: int) -> dict[str, int]:
        self.sequence += 1
        return {
            "consumer_id": consumer,
            "incarnation": 1,
            "sequence": self.sequence,
            "controller_epoch": 1,
            "plan_number": self.state.plan_number,
        }

    def report(self, consumer: int) -> inputs.ConsumerMessageRead:
        held = sorted(self.state.held_by.get(ConsumerId(consumer), ()))
        rows = tuple(
            ReportedPartition(
                topic=p.topic,
                partition=p.partition,
                epoch=str(self.state.holdings[p].epoch),
                next_offset=1,
            )
            for p in held
        )
        message = ConsumerReport.model_construct(
            **self.head(consumer),  # type: ignore[arg-type]  # numbers are not field sets
            report_number=1,
            phase=ConsumerPhase.RUNNING,
            owned=rows,
        )
        return inputs.ConsumerMessageRead(self.state.now_ms, message)

    def started(self, consumer: int, rows: list[tuple[TopicPartition, str]]) -> inputs.Input:
        named = tuple(
            StartedPartition(topic=p.topic, partition=p.partition, epoch=e, next_offset=0)
            for p, e in rows
        )
        event = StartConsumingEvent(**self.head(consumer), partitions=named)
        return inputs.ConsumerMessageRead(self.state.now_ms, event)

    def stopped(self, consumer: int, rows: list[tuple[TopicPartition, str]]) -> inputs.Input:
        named = tuple(
            StoppedPartition(topic=p.topic, partition=p.partition, epoch=e, next_offset=0)
            for p, e in rows
        )
        event = StopConsumingEvent(**self.head(consumer), partitions=named)
        return inputs.ConsumerMessageRead(self.state.now_ms, event)

    def settle(self) -> None:
        """Everyone reports and acknowledges what it was told to start."""
        self.give(inputs.Tick(self.state.now_ms + 500))
        self.give(self.packed(0))
        for consumer in self.consumers:
            for effect in self.give(self.report(consumer)):
                for rows in _rows(effect, StartConsumingCommand).values():
                    self.give(self.started(consumer, rows))
        if self.state.phase is not Phase.SENTINEL:
            raise SystemExit(f"not settled: {self.state.phase}")


def _rows(effect: object, kind: type[StartConsumingCommand | StopConsumingCommand]) -> Rows:
    found: Rows = {}
    if isinstance(effect, Send) and isinstance(effect.message, kind):
        message = effect.message
        if len(message.partitions) > PARTITIONS_PER_MESSAGE_MAX:
            raise SystemExit("a command is too long")
        found[message.consumer_id] = [(r.topic_partition, r.epoch) for r in message.partitions]
    return found


def best_ms(state: State, machine: Machine, make: Callable[[], inputs.Input]) -> float:
    """The fastest of some rounds: what a step costs when nobody else is on the machine."""
    times = []
    for _ in range(ROUNDS):
        given = make()
        before = time.process_time()
        machine.step(state, given)
        times.append((time.process_time() - before) * 1_000)
    return min(times)


def measure(partitions: int, consumers: int, bound_ms: float) -> bool:
    group = Group(partitions, consumers)
    group.settle()
    calm, machine = group.state, group.machine
    now = calm.now_ms
    steps: dict[str, float] = {
        "tick, calm": best_ms(calm, machine, lambda: inputs.Tick(now + 600)),
        "report": best_ms(calm, machine, lambda: group.report(1)),
        "measurement": best_ms(calm, machine, lambda: inputs.SpeedsMeasured(now, group.speeds)),
    }
    # Everything moves: the largest plan there is.
    busy = dict.fromkeys(group.partitions, 3.0)
    group.give(inputs.SpeedsMeasured(now, busy))
    asked = group.give(inputs.Tick(now + 4_000))
    if not any(isinstance(effect, Pack) for effect in asked):
        raise SystemExit("no plan was asked for")
    before_plan = group.state
    group.state = before_plan
    plan_ms = best_ms(before_plan, machine, lambda: group.packed(1))
    effects = group.give(group.packed(1))
    stops: Rows = {}
    for effect in effects:
        for consumer, rows in _rows(effect, StopConsumingCommand).items():
            stops.setdefault(consumer, []).extend(rows)
    moving = group.state
    first = min(stops)
    event = stops[first][:PARTITIONS_PER_MESSAGE_MAX]
    steps["stop event of one consumer"] = best_ms(
        moving, machine, lambda: group.stopped(first, event)
    )
    steps["tick, everything moving"] = best_ms(
        moving, machine, lambda: inputs.Tick(moving.now_ms + 100)
    )
    late = replace(moving, now_ms=moving.now_ms)
    steps["tick, everything sent again"] = best_ms(
        late, machine, lambda: inputs.Tick(moving.now_ms + 1_500)
    )
    sys.stdout.write(f"{partitions} partitions, {consumers} consumers; at most {bound_ms:g} ms\n")
    for name, took in steps.items():
        sys.stdout.write(f"  {name:30} {took:8.2f} ms\n")
    moves = sum(len(rows) for rows in stops.values())
    sys.stdout.write(f"  {'plan of all moves (aside)':30} {plan_ms:8.2f} ms, {moves} moves\n")
    return max(steps.values()) <= bound_ms


def main() -> int:
    small = measure(200, 10, 1.0)
    large = measure(10_000, 500, 50.0)
    return int(not (small and large))


if __name__ == "__main__":
    sys.exit(main())
