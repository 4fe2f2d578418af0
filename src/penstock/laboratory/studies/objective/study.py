"""The study of the objective: is it kept, and what does it cost against the best in hindsight?

Each load is led with what follows from each objective, as the product does it, and with every
setting of a grid. The cheapest setting of the grid that keeps the objective on that very load is
the best in hindsight: nobody can know it before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from penstock.laboratory.studies.objective.loads import SHAPES, Speeds, made_load
from penstock.laboratory.studies.objective.periodic import PeriodicPredictor
from penstock.laboratory.studies.objective.simulated_group import (
    Outcome,
    SimulatedGroup,
    Surroundings,
    choice_for,
    chosen,
)
from penstock.packing.objective import Objective
from penstock.settings import Settings, changed_settings

SHARE = 0.99
# How many more consumer-hours than the best in hindsight are allowed.
EXTRA_MAX = 0.10


@dataclass(frozen=True, slots=True)
class HindsightSetting:
    """One setting of the grid; times in seconds."""

    target_utilisation: float
    scale_down_s: int
    spares: int
    batch_s: float

    def settings(self) -> Settings:
        return changed_settings(
            Settings(),
            {
                "packing.target_utilisation": self.target_utilisation,
                "packing.scale_down_period": f"{self.scale_down_s}s",
                "controller.spare_consumers": self.spares,
                "consumer.batch_time": f"{self.batch_s}s",
                "consumer.backlog_batch_time": f"{2 * self.batch_s}s",
                "consumer.batch_period": f"{self.batch_s / 2}s",
                "controller.consumers_max": 500,
            },
        )


@dataclass(frozen=True, slots=True)
class ObjectiveStudyPlan:
    shapes: tuple[str, ...] = tuple(SHAPES)
    objectives_s: tuple[float, ...] = (2, 5, 10, 30, 120)
    seeds: tuple[int, ...] = (2026,)
    seconds: int = 4800
    # The first part is for learning, and is not counted.
    counted_from_s: int = 1200
    partitions: int = 64
    utilisations: tuple[float, ...] = (0.75, 0.85, 0.95)
    scale_downs_s: tuple[int, ...] = (60, 300)
    spares: tuple[int, ...] = (0, 1)
    batches_s: tuple[float, ...] = (0.6, 2.0, 8.0)

    def grid(self) -> list[HindsightSetting]:
        parts = product(self.utilisations, self.scale_downs_s, self.spares, self.batches_s)
        return [HindsightSetting(*one) for one in parts]

    def runs(self) -> list["ObjectiveRun"]:
        ways: list[HindsightSetting | float] = [*self.objectives_s, *self.grid()]
        return [
            ObjectiveRun(way, shape, seed, self, predicts=predicts)
            for shape in self.shapes
            for seed in self.seeds
            for way in ways
            for predicts in ((False, True) if isinstance(way, float | int) else (False,))
        ]


@dataclass(frozen=True, slots=True)
class ObjectiveRun:
    """One load, led by an objective (in seconds) or by a setting of the grid."""

    way: HindsightSetting | float
    shape: str
    seed: int
    plan: ObjectiveStudyPlan
    predicts: bool = False


@dataclass(frozen=True, slots=True)
class ObjectiveRunResult:
    run: ObjectiveRun
    # Paid for, a mean over the time that counts; and the least that any group needs.
    consumers: float
    bound: float
    moves: int
    # The share of the bytes that were visible in time, by objective.
    shares: tuple[float, ...]
    consumers_over_time: tuple[int, ...] = ()
    written_over_time: tuple[float, ...] = ()
    oldest_over_time_s: tuple[float, ...] = ()


def carry_out(run: ObjectiveRun) -> ObjectiveRunResult:
    plan = run.plan
    load = _load(run.shape, plan.seconds, plan.partitions, run.seed)
    predictor = PeriodicPredictor() if run.predicts else None
    if isinstance(run.way, HindsightSetting):
        group = SimulatedGroup(chosen(run.way.settings()), load, Surroundings())
    else:
        objective = Objective(float(run.way), SHARE)
        group = SimulatedGroup(choice_for(objective), load, Surroundings(), objective, predictor)
    found = group.run(plan.counted_from_s)
    return _result(run, found, is_drawn=not isinstance(run.way, HindsightSetting))


@lru_cache(maxsize=4)
def _load(shape: str, seconds: int, partitions: int, seed: int) -> Speeds:
    return made_load(shape, seconds, partitions, seed)


def _result(run: ObjectiveRun, found: Outcome, *, is_drawn: bool) -> ObjectiveRunResult:
    seconds = run.plan.seconds - run.plan.counted_from_s
    drawn = slice(None, None, 10) if is_drawn else slice(0, 0)
    return ObjectiveRunResult(
        run,
        found.consumer_seconds / seconds,
        found.bound_consumer_seconds / seconds,
        found.moves,
        tuple(found.share_within(one) for one in run.plan.objectives_s),
        tuple(found.consumers[drawn]),
        tuple(found.written[drawn]),
        tuple(found.oldest_s[drawn]),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """One load and one objective: what the product did, and the best in hindsight."""

    shape: str
    seed: int
    objective_s: float
    share: float
    consumers: float
    moves: int
    bound: float
    # None where no setting of the grid keeps the objective.
    best: ObjectiveRunResult | None
    predicted_share: float
    predicted_consumers: float

    @property
    def is_kept(self) -> bool:
        return self.share >= SHARE

    @property
    def extra(self) -> float | None:
        return None if self.best is None else self.consumers / self.best.consumers - 1

    @property
    def is_met(self) -> bool:
        return self.is_kept and (self.extra is None or self.extra <= EXTRA_MAX)


def verdicts(plan: ObjectiveStudyPlan, results: Sequence[ObjectiveRunResult]) -> list[Verdict]:
    found = []
    for shape, seed in product(plan.shapes, plan.seeds):
        of_load = [r for r in results if (r.run.shape, r.run.seed) == (shape, seed)]
        grid = [r for r in of_load if isinstance(r.run.way, HindsightSetting)]
        for place, objective_s in enumerate(plan.objectives_s):
            (own,) = (r for r in of_load if r.run.way == objective_s and not r.run.predicts)
            (ahead,) = (r for r in of_load if r.run.way == objective_s and r.run.predicts)
            keeping = [r for r in grid if r.shares[place] >= SHARE]
            best = min(keeping, key=lambda r: r.consumers, default=None)
            found.append(
                Verdict(
                    shape,
                    seed,
                    objective_s,
                    own.shares[place],
                    own.consumers,
                    own.moves,
                    own.bound,
                    best,
                    ahead.shares[place],
                    ahead.consumers,
                )
            )
    return found
