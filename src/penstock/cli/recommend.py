"""`penstock up --recommend`: what the group would do with your load, without touching anything.

Asks the brokers for speeds (reading only), and leads an imaginary group through the same trigger
and packing as the controller. No topic is made, no message sent, no consumer started.
"""

import time
from contextlib import closing
from threading import Event

from penstock.cli.console import say
from penstock.kafka_io.broker_questions import BrokerQuestions
from penstock.model import Assignment, TopicPartition
from penstock.monitor.core.measurement import measured_rows
from penstock.monitor.process import SpeedMeasuring
from penstock.packing import PackingProblem
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.scores import moves_between
from penstock.packing.trigger import (
    TriggerMemory,
    after_repack,
    decide,
    is_worthwhile,
    problem_for,
    view_of,
)
from penstock.settings import Settings
from penstock.settings.units import format_speed

SAY_EVERY_S = 10.0


def recommend_until(settings: Settings, stop: Event) -> None:
    policy = settings.packing.trigger_policy(plan_interval_s=settings.controller.plan_interval)
    algorithm = settings.packing.chosen_algorithm()
    say("Measuring only: nothing is made, sent or started. Ctrl-C ends it.")
    say(f"One consumer carries {format_speed(policy.capacity_bytes_per_s)} (packing.capacity).")
    memory, assignment, said_s = TriggerMemory(), Assignment(), 0.0
    with closing(BrokerQuestions(settings.kafka)) as questions:
        measuring = SpeedMeasuring(settings, questions)
        while not stop.wait(settings.monitor.period):
            speeds = _known(measuring)
            if not speeds:
                continue
            now_s = time.monotonic()
            group = view_of(policy, speeds, assignment)
            memory, verdict = decide(policy, memory, group, now_s)
            if verdict.repack:
                problem = problem_for(policy, group, assignment)
                packing = algorithm.pack(problem)
                changed = packing.assignment != assignment
                if changed and is_worthwhile(policy, verdict.reason, assignment, packing):
                    _explain(verdict.explanation, problem, assignment, packing.assignment)
                    for partition in packing.oversize:
                        say(f"  {partition} alone is more than one consumer carries.")
                    assignment, said_s = packing.assignment, now_s
                memory = after_repack(memory, verdict.reason, now_s, changed=changed)
            elif now_s - said_s >= SAY_EVERY_S:
                said_s = now_s
                total = format_speed(round(sum(speeds.values())))
                carried = f"{total} in {len(speeds)} partitions on {len(assignment)} consumers"
                say(f"{carried}; {verdict.explanation}.")


def _known(measuring: SpeedMeasuring) -> dict[TopicPartition, float]:
    """Unknown speeds are left out: a recommendation on a guess would be none."""
    found = measuring.run_round()
    if found is None:  # no broker has answered yet
        return {}
    return {
        TopicPartition(row["topic"], row["partition"]): row["write_speed_bytes_per_s"]
        for row in measured_rows(found)
        if row["write_speed_bytes_per_s"] is not None
    }


def _explain(why: str, problem: PackingProblem, before: Assignment, after: Assignment) -> None:
    least = consumers_at_least(problem)
    moved = moves_between(before, after, problem.write_speed_bytes_per_s)
    speed = format_speed(round(moved.load_bytes_per_s))
    say(
        f"{why[0].upper()}{why[1:]}. Would use {len(after)} consumers (at least {least} are "
        f"needed), moving {moved.partitions} partitions ({speed})."
    )
