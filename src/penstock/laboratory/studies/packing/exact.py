"""Compares CHAIN with the exact optimum of small cases, solved by `ortools`.

`ortools` is a development dependency; no production code imports this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.model import Assignment
from penstock.packing import PackingProblem
from penstock.packing.chain import KNOB_DEFAULT, ChainPacking
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.scores import moves_between
from penstock.packing.whole_numbers import NO_CONSUMER, IntegerProblem

SOLVER_TIME_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Optimum:
    consumers: int
    moved: int
    proved: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """Shares above the optimum by knob: (knob, consumers, moved load at equal consumers)."""

    cases: int
    proved: int
    seeds: str
    delta: int
    by_knob: tuple[tuple[float, float, float], ...]


def is_available() -> bool:
    return find_spec("ortools") is not None


def fewest_consumers(problem: PackingProblem) -> Optimum:
    """The fewest consumers that any packing needs."""
    return _solve(problem, consumers_max=None)


def least_moved(problem: PackingProblem, consumers_max: int) -> Optimum:
    """The least load that must move to use at most `consumers_max` consumers."""
    return _solve(problem, consumers_max)


def gap_to_optimum(seeds: Sequence[int], delta: int = 10, measurements: int = 6) -> Gap:
    """Replay a few measurements of small groups and compare every step with the optimum."""
    knobs = (0.0, KNOB_DEFAULT)
    consumers = dict.fromkeys(knobs, (0, 0))
    moved = dict.fromkeys(knobs, (0, 0))
    cases = proved = 0
    for seed in seeds:
        for knob in knobs:
            for problem in _steps(seed, delta, measurements, knob):
                ours = ChainPacking(knob).pack(problem).assignment
                fewest = fewest_consumers(problem)
                least = least_moved(problem, len(ours))
                cases += 1
                proved += fewest.proved and least.proved
                load = moves_between(problem.current, ours, problem.load_bytes_per_s)
                consumers[knob] = _added(consumers[knob], len(ours), fewest.consumers)
                moved[knob] = _added(moved[knob], int(load.load_bytes_per_s), least.moved)
    return Gap(
        cases,
        proved,
        f"{min(seeds)} to {max(seeds)}",
        delta,
        tuple((knob, _share(consumers[knob]), _share(moved[knob])) for knob in knobs),
    )


def _added(sums: tuple[int, int], ours: int, best: int) -> tuple[int, int]:
    return sums[0] + ours, sums[1] + best


def _share(sums: tuple[int, int]) -> float:
    return sums[0] / sums[1] - 1 if sums[1] else 0.0


def _steps(seed: int, delta: int, measurements: int, knob: float) -> list[PackingProblem]:
    """The packing problems of a small group, each starting from our previous answer."""
    partitions = 8 + seed % 17
    stream = generate(Recipe(Kind.WALK, partitions, delta, measurements, seed))
    assignment = Assignment()
    problems: list[PackingProblem] = []
    for measurement in range(len(stream)):
        problem = PackingProblem(stream.speeds(measurement), assignment, 100)
        assignment = ChainPacking(knob).pack(problem).assignment
        problems.append(problem)
    return problems[1:]


def _solve(problem: PackingProblem, consumers_max: int | None) -> Optimum:
    from ortools.sat.python import cp_model  # noqa: PLC0415 -- may not be installed

    integers = IntegerProblem.of(problem)
    items = range(len(integers.sizes))
    hint = ChainPacking(0).pack(replace(problem, consumers_max=None)).assignment
    slots = _slots(integers, max(len(hint), consumers_max or 0))
    model = cp_model.CpModel()
    used = {c: model.new_bool_var(f"used {c}") for c in slots}
    held = {(i, c): model.new_bool_var(f"{i} on {c}") for i in items for c in slots}
    for i in items:
        model.add_exactly_one(held[i, c] for c in slots)
    for c in slots:
        load = sum(integers.sizes[i] * held[i, c] for i in items)
        model.add(load <= integers.capacity * used[c])
        for i in items:
            model.add_implication(held[i, c], used[c])
    model.add(sum(used.values()) >= consumers_at_least(problem))
    moved = sum(
        integers.sizes[i] * held[i, c]
        for i in items
        for c in slots
        if integers.home[i] not in {NO_CONSUMER, c}
    )
    if consumers_max is None:
        model.minimize(sum(used.values()))
    else:
        model.add(sum(used.values()) <= consumers_max)
        model.minimize(moved)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = SOLVER_TIME_S_MAX
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    proved = solver.solve(model) == cp_model.OPTIMAL
    value = round(solver.objective_value)
    if consumers_max is None:
        return Optimum(value, 0, proved)
    return Optimum(sum(solver.value(var) for var in used.values()), value, proved)


def _slots(integers: IntegerProblem, count: int) -> list[int]:
    """The consumers to choose from: the present ones, and as many new ones as may be needed."""
    now = sorted(set(integers.home) - {NO_CONSUMER})
    new: list[int] = []
    candidate = 1
    while len(new) < count:
        if candidate not in now:
            new.append(candidate)
        candidate += 1
    return now + (new if not now else new[: max(1, count - len(now) + 2)])
