"""A simulated run as one HTML file that can be played: the page, with a slider.

Each measurement becomes a status, as a controller would publish it if moves took no time. So the
page's own code keeps, answers and shows it. What a simulation does not know (backlogs, what is
carried) is unknown there, never 0.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import Any

from penstock.controller.core.conditions import ConditionName
from penstock.controller.core.decisions import HISTORY_MAX, Code
from penstock.controller.core.dry_run import dry_run
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, Phase
from penstock.laboratory.packing_replay.replay import (
    OnEveryMeasurement,
    ReplayStep,
    ThroughTrigger,
)
from penstock.laboratory.packing_replay.stream import Stream
from penstock.model import Assignment, ConsumerId, ConsumerListDiff, TopicPartition
from penstock.model.sentences import counted, shortened_list, speed_text
from penstock.packing import PackingProblem
from penstock.packing.scores import moves_between
from penstock.packing.trigger import Reason, load_of_assignment, problem_for
from penstock.page.core.frames import POINTS, Frames, RunStory, whole_run
from penstock.page.core.watch import Watch
from penstock.page.process.run_file import write_run

GROUP = "simulated"
# Some moment that is not 0: the page shows times from the begin of the run.
BEGIN_UNIX_MS = 86_400_000
Decision = dict[str, Any]


@dataclass(slots=True)
class SimulatedRun:
    """What one algorithm does with one stream. Mutable: a step is added for each measurement."""

    algorithm: str
    stream: Stream
    mode: OnEveryMeasurement | ThroughTrigger
    interval_s: float
    watch: Watch = field(default_factory=Watch)
    frames: Frames = field(default_factory=Frames)
    _before: Assignment = field(default_factory=Assignment)
    _plans: int = 0
    # The newest decisions, each with its moment.
    _decided: deque[tuple[int, Decision]] = field(default_factory=lambda: deque(maxlen=HISTORY_MAX))

    def add(self, step: ReplayStep) -> None:
        speeds = self.stream.speeds(step.measurement)
        after = _working(step.assignment)
        at_ms = BEGIN_UNIX_MS + round(step.measurement * self.interval_s * 1_000)
        self._decide(step, after, speeds, at_ms)
        self._before = after
        plan = dry_run(self.algorithm, self._problem(speeds, after))
        self.watch.take_plan(plan, at_ms)
        self.watch.add(self._status(step, after, speeds, at_ms))
        self.frames.add(self.watch, GROUP)

    def write(self, file: Path, results: Mapping[str, str]) -> None:
        partitions = counted(len(self.stream.partitions), "partition")
        title = f"{self.algorithm}: {partitions}, {counted(len(self.stream), 'measurement')}"
        story = RunStory(title, results=dict(results), is_simulated=True)
        points = max(1, min(POINTS, len(self.stream) - 1))
        write_run(file, whole_run(self.watch, GROUP, self.frames, story, None, points))

    @property
    def _capacity_bytes_per_s(self) -> float:
        if isinstance(self.mode, OnEveryMeasurement):
            return self.mode.capacity_bytes_per_s
        return self.mode.policy.capacity_bytes_per_s

    @property
    def _target_utilisation(self) -> float:
        """Who packs on every measurement fills consumers to the brim, as in the published study."""
        if isinstance(self.mode, OnEveryMeasurement):
            return 1.0
        return self.mode.policy.target_utilisation

    def _problem(
        self, speeds: Mapping[TopicPartition, float], current: Assignment
    ) -> PackingProblem:
        """What the packer would be asked if it ran again."""
        mode = self.mode
        if isinstance(mode, OnEveryMeasurement):
            return PackingProblem(
                speeds,
                current,
                mode.capacity_bytes_per_s,
                partitions_per_consumer_max=mode.partitions_per_consumer_max,
                consumers_max=mode.consumers_max,
            )
        group = load_of_assignment(mode.policy, speeds, current)
        return problem_for(mode.policy, group, Reason.OVER_CAPACITY)

    def _decide(
        self,
        step: ReplayStep,
        after: Assignment,
        speeds: Mapping[TopicPartition, float],
        at_ms: int,
    ) -> None:
        """What changed, in the words of a controller's history."""
        if after == self._before:
            return
        self._plans += 1
        if step.reason is not None:
            self._told(at_ms, step.reason.value, step.explanation)
        diff = after - self._before
        moves = moves_between(self._before, after, speeds)
        explanation = f"plan {self._plans}: {_plan_text(diff, step.moved_partitions)}"
        self._told(
            at_ms,
            Code.PLAN_MADE,
            explanation,
            moves=moves.partitions,
            moved_bytes_per_s=moves.load_bytes_per_s,
        )
        if diff.create:
            self._told(at_ms, Code.CONSUMER_CREATED, f"{_consumers_text(diff.create)} started")
        if diff.remove:
            self._told(at_ms, Code.CONSUMER_REMOVED, f"{_consumers_text(diff.remove)} ended")

    def _told(self, at_ms: int, code: str, explanation: str, **cost: float) -> None:
        told = {"code": str(code), "explanation": explanation, "plan": self._plans, "times": 1}
        self._decided.append((at_ms, {"moves": 0, "moved_bytes_per_s": 0.0, **told, **cost}))

    def _status(
        self,
        step: ReplayStep,
        held_by: Assignment,
        speeds: Mapping[TopicPartition, float],
        at_ms: int,
    ) -> dict[str, Any]:
        owners = held_by.owners
        planned_ms = self._decided[-1][0] if self._decided else at_ms
        phase = Phase.REASSIGN if planned_ms == at_ms else Phase.SENTINEL
        return {
            "at_unix_ms": at_ms,
            "age_s": 0.0,
            "is_stale": False,
            "silence": None,
            "source": GROUP,
            "phase": phase.value,
            "phase_for_ms": at_ms - planned_ms,
            "reason": self._reason(step) if phase is Phase.REASSIGN else None,
            "controller_epoch": 1,
            "plan_number": self._plans,
            "conditions": self._conditions(step, held_by, speeds),
            "measurement_age_ms": 0,
            "capacity_bytes_per_s": self._capacity_bytes_per_s,
            "target_utilisation": self._target_utilisation,
            "settings": {
                "algorithm": self.algorithm,
                "consumers_min": 0,
                "consumers_max": self._consumers_max,
                "spare_consumers": 0,
            },
            "written_bytes_per_s": fsum(speeds.values()),
            **_unknown_backlog(),
            "behind_is_at_most": False,
            "behind_unknown": len(speeds),
            "consumers": [self._consumer(one, held, speeds) for one, held in held_by.items()],
            "partitions": {
                str(partition): {
                    "write_speed_bytes_per_s": speed,
                    "consumer": owners.get(partition),
                    "status": HoldingStatus.OWNED.value if partition in owners else "unread",
                }
                for partition, speed in speeds.items()
            },
            "moves": [],
            "question": _question(self._problem(speeds, held_by)),
            "parked": {},
            "parked_details": {},
            "pauses": [],
            "roll_out": None,
            "held_by_silence": None,
            "history": [
                {**one, "age_ms": at_ms - then_ms, "first_age_ms": at_ms - then_ms}
                for then_ms, one in self._decided
            ],
        }

    @staticmethod
    def _reason(step: ReplayStep) -> dict[str, str] | None:
        if step.reason is None:
            return {"code": Code.PLAN_MADE.value, "explanation": "every measurement is packed"}
        return {"code": step.reason.value, "explanation": step.explanation}

    @property
    def _consumers_max(self) -> int | None:
        if isinstance(self.mode, OnEveryMeasurement):
            return self.mode.consumers_max
        return self.mode.policy.consumers_max

    def _consumer(
        self,
        consumer: ConsumerId,
        held: frozenset[TopicPartition],
        speeds: Mapping[TopicPartition, float],
    ) -> dict[str, Any]:
        return {
            "consumer": int(consumer),
            "status": ConsumerStatus.READY.value,
            "incarnation": 1,
            "deployment_version": 1,
            "occupation": "",
            "heard_ms_ago": 0,
            "load_bytes_per_s": fsum(speeds.get(one, 0.0) for one in held),
            "capacity_bytes_per_s": self._capacity_bytes_per_s,
            "measured_capacity_bytes_per_s": None,
            **_unknown_backlog(),
            "partitions": [str(one) for one in sorted(held)],
        }

    def _conditions(
        self, step: ReplayStep, held_by: Assignment, speeds: Mapping[TopicPartition, float]
    ) -> list[dict[str, str]]:
        found = []
        capacity = self._capacity_bytes_per_s
        over = [
            one
            for one, held in held_by.items()
            if len(held) > 1 and fsum(speeds.get(p, 0.0) for p in held) > capacity
        ]
        if over:
            verb = "is" if len(over) == 1 else "are"
            reason = f"{_consumers_text(tuple(over))} {verb} over {speed_text(capacity)}"
            found.append({"condition": "over capacity", "reason": reason})
        if step.oversize:
            what = counted(step.oversize, "partition")
            reason = f"{what} faster than a whole consumer"
            found.append({"condition": ConditionName.OVERSIZE.value, "reason": reason})
        return found


def _working(assignment: Assignment) -> Assignment:
    return Assignment({one: held for one, held in assignment.items() if held})


def _question(problem: PackingProblem) -> dict[str, Any]:
    """What the packer would be asked, as a controller writes it."""
    return {
        "load_bytes_per_s": {str(one): x for one, x in problem.load_bytes_per_s.items()},
        "current": {str(one): [str(p) for p in held] for one, held in problem.current.items()},
        "capacity_bytes_per_s": problem.capacity_bytes_per_s,
        "capacity_bytes_per_s_by_consumer": {
            str(one): x for one, x in problem.capacity_bytes_per_s_by_consumer.items()
        },
        "partitions_per_consumer_max": problem.partitions_per_consumer_max,
        "consumers_max": problem.consumers_max,
        "forecast_bytes_per_s": {str(one): x for one, x in problem.forecast_bytes_per_s.items()},
    }


def _unknown_backlog() -> dict[str, None]:
    return {"behind_records": None, "behind_bytes": None, "behind_s": None}


def _consumers_text(consumers: tuple[ConsumerId, ...]) -> str:
    noun = "consumer" if len(consumers) == 1 else "consumers"
    return f"{noun} {shortened_list([str(one) for one in consumers])}"


def _plan_text(diff: ConsumerListDiff, moves: int) -> str:
    """`3 moves, 2 partitions to start, 1 consumer to create`, without what is none."""
    starts = sum(len(held) for held in diff.start.values()) - moves
    parts = [
        counted(moves, "move") if moves else "",
        f"{counted(starts, 'partition')} to start" if starts else "",
        f"{counted(len(diff.create), 'consumer')} to create" if diff.create else "",
        f"{counted(len(diff.remove), 'consumer')} to empty" if diff.remove else "",
    ]
    return ", ".join(part for part in parts if part)


def results_of(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of the summary's table, in words, for the head of the file."""
    return {
        "consumers, mean": f"{row['consumers_mean']:g}",
        "consumers, most": f"{row['consumers_max']:g}",
        "fewest possible, mean": f"{row['lower_bound_mean']:g}",
        "CBS (consumers above the fewest compared)": f"{row['cbs']:.1%}",
        "R (load moved by a repack, in consumers)": f"{row['r']:g}",
        "moves": f"{row['moves']:,}",
        "moves an hour": f"{row['moves_per_hour']:,g}",
        "seconds over capacity, all consumers": f"{row['over_capacity_s']:,g}",
    }
