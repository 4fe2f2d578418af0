"""The study of the objective: its loads, its simulated group, its predictor and its report."""

from pathlib import Path

import numpy as np
import pytest

from kit.program import invoked
from penstock.laboratory.studies.objective.loads import PARTITION_MAX, SHAPES, made_load
from penstock.laboratory.studies.objective.periodic import (
    AHEAD_S,
    EVERY_S,
    PeriodicPredictor,
    period_of,
)
from penstock.laboratory.studies.objective.simulated_group import (
    SimulatedGroup,
    Surroundings,
    choice_for,
)
from penstock.laboratory.studies.objective.study import (
    HindsightSetting,
    ObjectiveRun,
    ObjectiveStudyPlan,
    carry_out,
    verdicts,
)
from penstock.packing.objective import Objective


def test_loads_are_repeatable_and_bearable() -> None:
    """The same seed gives the same load, and one consumer can carry each partition."""
    for shape in SHAPES:
        load = made_load(shape, 300, 6, 5)
        assert load.shape == (300, 6)
        assert (load == made_load(shape, 300, 6, 5)).all()
        assert (load != made_load(shape, 300, 6, 6)).any()
        assert 0 <= load.min() <= load.max() <= PARTITION_MAX


def test_a_steady_group_is_fresh() -> None:
    """Everything is carried, once, within two batches and a bit."""
    load = np.full((300, 6), 0.3)
    group = SimulatedGroup(choice_for(Objective(10.0)), load, Surroundings())
    found = group.run(60)
    assert group.carried.sum() == pytest.approx(load.sum() * 1e6, rel=0.01)
    assert found.share_within(5.0) > 0.99
    assert found.moves == 0
    assert found.consumer_seconds / 240 == pytest.approx(4, abs=0.1)
    assert found.bound_consumer_seconds / 240 == pytest.approx(1.8)


def test_a_step_makes_some_of_it_late() -> None:
    """Late while the group grows, and on time again when it has."""
    load = np.full((400, 6), 0.1)
    load[200:] = 0.45
    group = SimulatedGroup(choice_for(Objective(10.0)), load, Surroundings(start_s=60))
    found = group.run()
    assert found.moves > 0
    assert 0.3 < found.share_within(10.0) < 0.99
    assert max(found.oldest_s[:200]) < 5 < max(found.oldest_s[200:])
    assert group.behind().sum() < 0.1 * load[200:].sum() * 1e6
    assert max(found.consumers) > max(found.consumers[:200])


def test_a_period_is_found_and_its_phase_expected() -> None:
    """A job of every minute; noise has no period."""
    at = np.arange(0, 900, EVERY_S)
    job = np.where(at % 60 < 10, 5.0, 1.0)
    assert period_of(job) == 60 // EVERY_S
    assert period_of(np.random.default_rng(1).normal(size=200)) is None
    assert period_of(np.ones(100)) is None
    assert period_of(np.ones(5)) is None
    predictor = PeriodicPredictor()
    assert predictor.expected(0) is None
    for second in range(601):
        predictor.observe(second, np.array([5.0 if second % 60 < 10 else 1.0, 2.0]))
    before_it = 600 + 60 - AHEAD_S
    expected = predictor.expected(600 + 15)
    assert expected is not None
    assert expected.tolist() == [1.0, 2.0]
    expected = predictor.expected(before_it)
    assert expected is not None
    assert expected.tolist() == [5.0, 2.0]


def test_a_verdict_compares_with_the_cheapest_that_keeps_the_objective() -> None:
    """The objective's own run, and the best of the grid on the same load."""
    plan = ObjectiveStudyPlan(
        shapes=("steps",),
        objectives_s=(10,),
        seconds=120,
        counted_from_s=30,
        partitions=4,
        utilisations=(0.5, 0.85),
        scale_downs_s=(60,),
        spares=(1,),
        batches_s=(2.0,),
    )
    results = [carry_out(run) for run in plan.runs()]
    (found,) = verdicts(plan, results)
    grid = [one for one in results if isinstance(one.run.way, HindsightSetting)]
    keeping = [one.consumers for one in grid if one.shares[0] >= 0.99]
    assert (found.best is None) == (not keeping)
    if found.best is not None:
        assert found.best.consumers == min(keeping)
        assert found.extra == found.consumers / min(keeping) - 1
    own = carry_out(ObjectiveRun(10, "steps", plan.seeds[0], plan))
    assert (found.share, found.consumers) == (own.shares[0], own.consumers)


def test_the_short_study_writes_its_report(tmp_path: Path) -> None:
    """A page with a row for each load and objective, the misses by name, pictures and numbers."""
    result = invoked("study", "objective", "--quick", "--folder", str(tmp_path))
    assert result.exit_code == 0, result.output
    page = (tmp_path / "objective.md").read_text(encoding="utf-8")
    assert "| minute job | 2 s |" in page
    assert "| steps | 30 s |" in page
    assert "## Where it misses" in page
    lines = (tmp_path / "objective.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 2 * (2 * 2 + 2)
    for picture in ("objective-front.png", "objective-over-time.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
