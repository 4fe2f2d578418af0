"""The packing study: the published comparison of twelve algorithms, repeated with ours added.

It plans one task per stream and algorithm; `sweep` distributes the tasks, and `report` writes the
report.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from time import process_time

from penstock.laboratory.packing_replay.generate import UNIFORM_START, Kind, Recipe, generate
from penstock.laboratory.packing_replay.replay import OnEveryMeasurement, replay
from penstock.packing import PUBLISHED, algorithm_named
from penstock.packing.scores import cardinal_bin_scores

CAPACITY = 100
OUR_NAMES = ("CHAIN@0", "CHAIN@0.2", "CHAIN@0.4", "CHAIN", "CHAIN@0.7", "CHAIN@1")
ONLY_UNIFORM = ("CHAIN@0.2", "CHAIN@0.4", "CHAIN@0.7")
NAMES = (*OUR_NAMES, *(algorithm.name for algorithm in PUBLISHED))


@dataclass(frozen=True, slots=True)
class PackingStudyPlan:
    """What to run. The seeds differ from those used for tuning (9001 to 9003)."""

    starts: tuple[str, ...] = ("uniform", "0", "50", "100")
    deltas: tuple[int, ...] = (0, 5, 10, 15, 20, 25)
    seeds: tuple[int, ...] = (1, 2, 3)
    seeds_of_other_starts: tuple[int, ...] = (1,)
    # The twelve run on more streams, because the published table used only one per delta.
    seeds_of_published: tuple[int, ...] = tuple(range(1, 17))
    measurements: int = 501
    partitions: int = 200
    names: tuple[str, ...] = NAMES

    def tasks(self) -> list["PackingRun"]:
        """All tasks, with the published start first."""
        return [
            PackingRun(name, start, delta, seed, self._measurements_of(delta), self.partitions)
            for start in self.starts
            for seed in self.seeds_of(start)
            for delta in self.deltas
            for name in self.names_of(start)
        ]

    def tasks_of_published(self) -> list["PackingRun"]:
        """Further runs of the published algorithms that `tasks` does not include."""
        return [
            PackingRun(name, UNIFORM_START, delta, seed, self.measurements, self.partitions)
            for seed in self.seeds_of_published
            if seed not in self.seeds
            for delta in self.deltas
            if delta > 0
            for name in self.names
            if name not in OUR_NAMES
        ]

    def names_of(self, start: str) -> tuple[str, ...]:
        """All knobs of CHAIN on the uniform start; only 0, the default and 1 on the others."""
        if start == UNIFORM_START:
            return self.names
        return tuple(name for name in self.names if name not in ONLY_UNIFORM)

    def _measurements_of(self, delta: int) -> int:
        """At delta 0 every measurement is the same, so a few are enough."""
        return min(self.measurements, 61) if delta == 0 else self.measurements

    def seeds_of(self, start: str) -> tuple[int, ...]:
        return self.seeds if start == UNIFORM_START else self.seeds_of_other_starts


@dataclass(frozen=True, slots=True)
class PackingRun:
    """One algorithm over one stream."""

    name: str
    start: str
    delta: int
    seed: int
    measurements: int
    partitions: int

    @property
    def stream(self) -> tuple[str, int, int]:
        return self.start, self.delta, self.seed


@dataclass(frozen=True, slots=True)
class PackingRunResult:
    run: PackingRun
    consumers: tuple[int, ...]
    moved_score_mean: float
    over_capacity: int
    time_per_run_ms: float


@dataclass(frozen=True, slots=True)
class Score:
    """Means over seeds."""

    cbs: float
    r: float
    consumers: float
    time_per_run_ms: float


def to_line(outcome: PackingRunResult) -> str:
    """The result as a line of a file of finished runs."""
    return json.dumps(asdict(outcome))


def from_line(line: str) -> PackingRunResult:
    fields = json.loads(line)
    return PackingRunResult(
        **{**fields, "run": PackingRun(**fields["run"]), "consumers": (*fields["consumers"],)}
    )


def carry_out(run: PackingRun) -> PackingRunResult:
    recipe = Recipe(
        Kind.WALK, run.partitions, run.delta, run.measurements, run.seed, start=run.start
    )
    stream = generate(recipe, CAPACITY)
    algorithm = algorithm_named(run.name)
    steps = list(replay(algorithm, stream, OnEveryMeasurement(CAPACITY), process_time))
    return PackingRunResult(
        run,
        tuple(step.consumers for step in steps),
        fsum(step.moved_score for step in steps[1:]) / max(1, len(steps) - 1),
        sum(step.over_capacity for step in steps),
        1000 * fsum(step.took_s or 0 for step in steps) / len(steps),
    )


def scores(outcomes: Sequence[PackingRunResult]) -> dict[tuple[str, str, int], Score]:
    """(start, algorithm, delta) -> means over seeds; CBS among all algorithms on a stream."""
    by_stream: dict[tuple[str, int, int], dict[str, PackingRunResult]] = {}
    for outcome in outcomes:
        by_stream.setdefault(outcome.run.stream, {})[outcome.run.name] = outcome
    gathered: dict[tuple[str, str, int], list[Score]] = {}
    for (start, delta, _), ran in sorted(by_stream.items()):
        cbs = cardinal_bin_scores({name: outcome.consumers for name, outcome in ran.items()})
        for name, outcome in ran.items():
            mean = fsum(outcome.consumers) / len(outcome.consumers)
            score = Score(cbs[name], outcome.moved_score_mean, mean, outcome.time_per_run_ms)
            gathered.setdefault((start, name, delta), []).append(score)
    return {key: _mean(found) for key, found in gathered.items()}


def not_dominated(found: Mapping[tuple[str, str, int], Score], start: str, delta: int) -> list[str]:
    """Published algorithms that no knob of CHAIN beats in both scores at once."""
    ours = [found[start, name, delta] for name in OUR_NAMES if (start, name, delta) in found]
    return [
        algorithm.name
        for algorithm in PUBLISHED
        if (start, algorithm.name, delta) in found
        and not any(
            point.cbs <= found[start, algorithm.name, delta].cbs
            and point.r <= found[start, algorithm.name, delta].r
            for point in ours
        )
    ]


def _mean(found: Sequence[Score]) -> Score:
    count = len(found)
    return Score(
        fsum(one.cbs for one in found) / count,
        fsum(one.r for one in found) / count,
        fsum(one.consumers for one in found) / count,
        fsum(one.time_per_run_ms for one in found) / count,
    )
