"""The study of the objective: is it kept, and what does it cost against the best in hindsight?

Each load is led with what follows from each objective, as the product does it, and with every
setting of a grid. The cheapest setting of the grid that keeps the objective on that very load is
the best in hindsight: nobody can know it before. Where none of the grid keeps an objective, more
careful settings are tried: what none of them keeps either cannot be kept by any setting tried.

Kept is judged twice, and the stricter counts: by the share of the bytes that are visible in time,
and by the share of the seconds that are fresh. A second is fresh when as much of what was written
in it is visible in time as the objective asks for. The share of the seconds without any late
record, which no objective promises, is told beside it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from multiprocessing import get_context

from penstock.laboratory.studies.objective.loads import SHAPES, Speeds, made_load
from penstock.laboratory.studies.objective.outcome import Outcome
from penstock.laboratory.studies.objective.periodic import PeriodicPredictor
from penstock.laboratory.studies.objective.simulated_group import (
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
# The rules and figures of the objective were chosen on loads of this seed, and on no other.
RULES_CHOSEN_ON = 2026


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
    seeds: tuple[int, ...] = (RULES_CHOSEN_ON, 7)
    seconds: int = 4800
    # The first part is for learning, and is not counted.
    counted_from_s: int = 1200
    partitions: int = 64
    utilisations: tuple[float, ...] = (0.75, 0.85, 0.95)
    scale_downs_s: tuple[int, ...] = (60, 300)
    spares: tuple[int, ...] = (0, 1)
    batches_s: tuple[float, ...] = (0.6, 2.0, 8.0)
    # Only where none of the others keeps an objective: with the shortest batches.
    careful_utilisations: tuple[float, ...] = (0.5, 0.6, 0.7)
    careful_spares: tuple[int, ...] = (0, 1, 2, 3)

    def grid(self) -> list[HindsightSetting]:
        parts = product(self.utilisations, self.scale_downs_s, self.spares, self.batches_s)
        return [HindsightSetting(*one) for one in parts]

    def careful_grid(self) -> list[HindsightSetting]:
        """More room and more spares than a person would begin with."""
        batches_s = (min(self.batches_s),)
        parts = product(
            self.careful_utilisations, self.scale_downs_s, self.careful_spares, batches_s
        )
        return [HindsightSetting(*one) for one in parts]

    def own_runs(self) -> list["ObjectiveRun"]:
        """Those that are led as the product leads: neither by the grid nor with a prediction."""
        return [
            ObjectiveRun(way, shape, seed, self)
            for shape, seed, way in product(self.shapes, self.seeds, self.objectives_s)
        ]

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
    # Of consumers, in the time that counts; None where an older table of numbers does not say it.
    starts: int | None
    ends: int | None
    # The share of the bytes that were visible in time, by objective.
    shares: tuple[float, ...]
    # The share of the seconds that were fresh, by objective; and of those without any late record.
    # Both are empty where a table of numbers does not say them.
    times: tuple[float, ...]
    times_without_late: tuple[float, ...] = ()
    consumers_over_time: tuple[int, ...] = ()
    written_over_time: tuple[float, ...] = ()
    oldest_over_time_s: tuple[float, ...] = ()
    # When it was carried out, where that was not now.
    date: str = ""

    def kept(self, place: int) -> float:
        """How far the objective at this place was kept at most, by what is known."""
        return min([self.shares[place], *self.times[place : place + 1]])


def runs_to_judge(
    plan: ObjectiveStudyPlan, results: Sequence[ObjectiveRunResult]
) -> list[ObjectiveRun]:
    """What must be carried out before hindsight can be judged; asked again until nothing is.

    First each cheapest setting whose share of the time is not known: it may be late after all, and
    then the next one is asked for. Where none is left, the more careful ones.
    """
    cheapest = [one.best for one in verdicts(plan, results) if one.best is not None]
    unknown = [one.run for one in cheapest if not one.times]
    return list(dict.fromkeys(unknown)) or careful_runs(plan, results)


def careful_runs(
    plan: ObjectiveStudyPlan, results: Sequence[ObjectiveRunResult]
) -> list[ObjectiveRun]:
    """After the others: for the loads with an objective that no setting of the grid keeps."""
    done = {one.run for one in results}
    late = {
        (one.shape, one.seed)
        for one in verdicts(plan, results)
        if one.highest_kept is not None and one.best is None
    }
    runs = (
        ObjectiveRun(way, shape, seed, plan)
        for shape, seed in product(plan.shapes, plan.seeds)
        if (shape, seed) in late
        for way in plan.careful_grid()
    )
    return [run for run in runs if run not in done]


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


def carry_out_all(
    runs: Sequence[ObjectiveRun], processes: int, on_progress: Callable[[int], None]
) -> list[ObjectiveRunResult]:
    """In the order of the runs; in processes of their own where more than one is asked for."""
    results: list[ObjectiveRunResult] = []
    if processes == 1:
        for run in runs:
            results.append(carry_out(run))
            on_progress(len(results))
        return results
    # A process that is copied while the progress bar's thread runs may hang, so each is new.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for result in pool.map(carry_out, runs):
            results.append(result)
            on_progress(len(results))
    return results


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
        found.starts,
        found.ends,
        tuple(found.share_within(one) for one in run.plan.objectives_s),
        tuple(found.time_within(one) for one in run.plan.objectives_s),
        tuple(found.time_without_late(one) for one in run.plan.objectives_s),
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
    # Of the bytes that were visible in time, of the seconds that were fresh, and of those without
    # any late record; the last is None where it is not known.
    share: float
    time: float
    time_without_late: float | None
    consumers: float
    moves: int
    starts: int | None
    ends: int | None
    bound: float
    # None where no setting of the grid keeps the objective, or none was tried.
    best: ObjectiveRunResult | None
    # The cheapest that keeps the objective by the share of the bytes alone.
    best_by_bytes: ObjectiveRunResult | None
    # With a prediction; None where that was not tried.
    ahead: ObjectiveRunResult | None
    predicted_share: float | None
    # The most that a setting of the grid kept, by the stricter measure; None where none was tried.
    highest_kept: float | None

    @property
    def can_be_kept(self) -> bool:
        """By a setting that was tried, or by the objective itself; or it is not known."""
        return self.best is not None or self.is_kept or self.highest_kept is None

    @property
    def kept(self) -> float:
        """By the stricter of both measures."""
        return min(self.share, self.time)

    @property
    def is_kept(self) -> bool:
        return self.kept >= SHARE

    @property
    def extra(self) -> float | None:
        return None if self.best is None else self.consumers / self.best.consumers - 1

    @property
    def extra_by_bytes(self) -> float | None:
        """Where the group and hindsight are judged by the share of the bytes alone."""
        best = self.best_by_bytes
        return None if best is None else self.consumers / best.consumers - 1

    @property
    def is_met(self) -> bool:
        return self.is_kept and (self.extra is None or self.extra <= EXTRA_MAX)


def verdicts(plan: ObjectiveStudyPlan, results: Sequence[ObjectiveRunResult]) -> list[Verdict]:
    found = []
    for seed, shape in product(plan.seeds, plan.shapes):
        of_load = [r for r in results if (r.run.shape, r.run.seed) == (shape, seed)]
        grid = [r for r in of_load if isinstance(r.run.way, HindsightSetting)]
        for place, objective_s in enumerate(plan.objectives_s):
            (own,) = (r for r in of_load if r.run.way == objective_s and not r.run.predicts)
            foreseen = (r for r in of_load if r.run.way == objective_s and r.run.predicts)
            ahead = next(foreseen, None)
            keeping = [r for r in grid if r.kept(place) >= SHARE]
            best = min(keeping, key=lambda r: r.consumers, default=None)
            in_bytes = (r for r in grid if r.shares[place] >= SHARE)
            by_bytes = min(in_bytes, key=lambda r: r.consumers, default=None)
            found.append(
                Verdict(
                    shape,
                    seed,
                    objective_s,
                    own.shares[place],
                    own.times[place],
                    next(iter(own.times_without_late[place : place + 1]), None),
                    own.consumers,
                    own.moves,
                    own.starts,
                    own.ends,
                    own.bound,
                    best,
                    by_bytes,
                    ahead,
                    None if ahead is None else ahead.shares[place],
                    max((r.kept(place) for r in grid), default=None),
                )
            )
    return found
