"""`penstock up --recommend`: what the group would do with your load, without touching anything.

It only reads write speeds from the brokers, and leads an imaginary group by the controller's own
settings, trigger, trend and packing. No topic is created, no message sent, no consumer started.
"""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event

from penstock.cli.console import say
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.kafka_io.broker_questions import BrokerQuestions
from penstock.model import Assignment, TopicPartition
from penstock.model.sentences import counted, speed_text
from penstock.monitor.core.measurement import measured_rows
from penstock.monitor.process import SpeedMeasuring
from penstock.packing import PackingAlgorithm, PackingProblem, algorithm_named
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.scores import moves_between
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    TriggerMemory,
    TriggerPolicy,
    after_repack,
    decide,
    load_of_assignment,
    problem_for,
)
from penstock.packing.worthwhile import is_worthwhile
from penstock.settings import Settings

# How often a calm group is reported.
REPORT_EVERY_MS = 10_000


@dataclass(slots=True)
class ImaginaryGroup:
    """The group that the recommendation leads: what the controller would remember."""

    policy: TriggerPolicy
    algorithm: PackingAlgorithm
    assignment: Assignment = field(default_factory=Assignment)
    memory: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    speeds: SpeedMemory = field(default_factory=SpeedMemory)

    def measured(self, speeds: Mapping[TopicPartition, float], now_ms: int) -> tuple[str, bool]:
        """What the controller would do now, and whether that changes the assignment."""
        policy = self.policy
        self.speeds = remember(
            self.speeds, speeds, now_ms, policy.over_capacity_ms, policy.scale_down_period_ms
        )
        self.trend = observe(self.trend, self.speeds.established, now_ms)
        group = load_of_assignment(policy, speeds, self.assignment, self.speeds)
        self.memory, decision = decide(policy, self.memory, group, now_ms)
        if not decision.repack:
            total = speed_text(sum(speeds.values()))
            partitions = counted(len(speeds), "partition")
            consumers = counted(len(self.assignment), "consumer")
            return f"{total} in {partitions} on {consumers}; {decision.explanation}.", False
        ahead = forecast(self.trend, policy.look_ahead_ms) if policy.look_ahead_ms else None
        problem = problem_for(policy, group, decision.reason, ahead)
        packing = self.algorithm.pack(problem)
        before, after = self.assignment, packing.assignment
        changed = before != after and is_worthwhile(policy, group, decision.reason, after)
        self.memory = after_repack(self.memory, decision.reason, now_ms, changed=changed)
        if not changed:
            return f"{decision.explanation}; no better assignment was found.", False
        self.assignment = after
        lines = [_change(decision.explanation, problem, before, after)]
        lines += [f"  {p} alone is more than one consumer carries." for p in packing.oversize]
        return "\n".join(lines), True


def recommend_until(settings: Settings, stop: Event) -> None:
    """Report what the controller would do, until told to stop."""
    chosen = controller_settings(settings)
    group = ImaginaryGroup(chosen.policy, algorithm_named(chosen.algorithm))
    capacity = speed_text(chosen.policy.capacity_bytes_per_s)
    say("Measuring only: nothing is created, sent or started. Ctrl-C ends it.")
    say(f"One consumer carries {capacity} (packing.capacity).")
    say(_kept_besides(chosen))
    reported_ms: int | None = None
    with closing(BrokerQuestions(settings.kafka)) as questions:
        measuring = SpeedMeasuring(settings, questions)
        while not stop.wait(settings.monitor.period):
            speeds = _known(measuring)
            if not speeds:
                continue
            now_ms = time.monotonic_ns() // 1_000_000
            text, is_change = group.measured(speeds, now_ms)
            if is_change or reported_ms is None or now_ms - reported_ms >= REPORT_EVERY_MS:
                reported_ms = now_ms
                say(text)


def _kept_besides(chosen: ControllerSettings) -> str:
    """The packing does not count consumers that have nothing to read."""
    spares = counted(chosen.spare_consumers, "spare")
    return (
        f"Beside those named below the group keeps {spares} (controller.spare_consumers), and at "
        f"least {counted(chosen.consumers_min, 'consumer')} in all (controller.consumers_min)."
    )


def _known(measuring: SpeedMeasuring) -> dict[TopicPartition, float]:
    """Partitions whose speed is not known yet are left out: no recommendation rests on a guess."""
    found = measuring.run_round()
    if found is None:  # no broker has answered yet
        return {}
    return {
        TopicPartition(row["topic"], row["partition"]): row["write_speed_bytes_per_s"]
        for row in measured_rows(found)
        if row["write_speed_bytes_per_s"] is not None
    }


def _change(why: str, problem: PackingProblem, before: Assignment, after: Assignment) -> str:
    least = consumers_at_least(problem)
    moved = moves_between(before, after, problem.load_bytes_per_s)
    return (
        f"{why[0].upper()}{why[1:]}. Would use {counted(len(after), 'consumer')} (at least {least} "
        f"needed), moving {counted(moved.partitions, 'partition')} "
        f"({speed_text(moved.load_bytes_per_s)})."
    )
