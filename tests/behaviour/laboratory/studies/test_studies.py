"""The studies: distributed by real Spark, resumable, and written as a report."""

import json
from pathlib import Path

import pytest

from kit.program import invoked
from penstock.errors import UsageError
from penstock.laboratory.studies.frequency import study as frequency_study
from penstock.laboratory.studies.packing import study as packing_study
from penstock.laboratory.studies.packing.study import (
    PackingRun,
    PackingRunResult,
    PackingStudyPlan,
    from_line,
    scores,
    to_line,
)
from penstock.laboratory.studies.sweep import spread


def outcome(name: str, consumers: tuple[int, ...], r: float) -> PackingRunResult:
    return PackingRunResult(PackingRun(name, "uniform", 5, 1, 3, 10), consumers, r, 0, 1.0)


def test_the_plan_is_the_published_one() -> None:
    """The plan has thirteen algorithms, four starts, deltas 0 to 25 and 501 measurements."""
    tasks = PackingStudyPlan().tasks()
    assert {task.start for task in tasks} == {"uniform", "0", "50", "100"}
    assert {task.delta for task in tasks} == {0, 5, 10, 15, 20, 25}
    assert {task.measurements for task in tasks if task.delta} == {501}
    assert {task.partitions for task in tasks} == {200}
    assert len({task.name for task in tasks}) == 12 + len(packing_study.OUR_NAMES)
    assert len({task.seed for task in tasks if task.start == "uniform"}) >= 3


def test_scores_are_taken_per_stream() -> None:
    """CBS is relative to the fewest on a stream; undominated published points are found."""
    found = scores(
        [outcome("CHAIN", (10, 10), 5.0), outcome("MWF", (11, 11), 9.0), outcome("BF", (9, 9), 7)]
    )
    assert found["uniform", "MWF", 5].cbs == pytest.approx(2 / 9)
    assert packing_study.not_dominated(found, "uniform", 5) == ["BF"]


def test_finished_runs_are_kept_as_lines() -> None:
    """A finished run written as a line reads back."""
    one = outcome("MWF", (3, 4), 0.5)
    assert from_line(to_line(one)) == one


def test_frequency_costs_weigh_late_seconds() -> None:
    """Twice the needed consumers cost 2, plus the weighted late seconds."""
    setting = frequency_study.Setting(5, 0.1, 300)
    run = frequency_study.FrequencyRun(setting, "calm", 1, 721, 40)
    calm = frequency_study.FrequencyRunResult(run, 20, 10, 0, 0, 1)
    late = frequency_study.FrequencyRunResult(run, 20, 10, 7200, 0, 1)
    assert calm.cost(10) == pytest.approx(2)
    assert late.cost(1) == pytest.approx(3)
    assert frequency_study.best([calm, late], 1) == setting


def test_a_frequency_run_has_figures_per_hour() -> None:
    """On a bursty load partitions move, and all figures are per hour."""
    setting = frequency_study.Setting(5, 0.1, 60)
    found = frequency_study.carry_out(frequency_study.FrequencyRun(setting, "bursty", 3, 61, 20))
    assert found.bound_hours <= found.consumer_hours
    assert found.moves > 0
    assert found.repacks > 0


def test_seeds_that_are_no_numbers_are_refused() -> None:
    """Seeds that are not numbers are an error."""
    result = invoked("study", "packing", "--seeds", "one")
    assert isinstance(result.exception, UsageError)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_spreads_the_runs_and_the_page_is_written(tmp_path: Path) -> None:
    """Both quick studies run on real Spark and write a report with command and seeds."""
    done: list[int] = []
    numbers = spread([3, 1, 2], str, master="local[2]", on_progress=done.append)
    assert numbers == ["3", "1", "2"]
    assert done[-1] == 3
    keep = tmp_path / "kept.jsonl"
    arguments = ["study", "packing", "--quick", "--folder", str(tmp_path), "--keep", str(keep)]
    result = invoked(*arguments, "--master", "local[2]")
    assert result.exception is None
    page = (tmp_path / "packing.md").read_text()
    assert "seeds 1 for the uniform start" in page
    assert "Against the exact optimum" in page
    kept = [json.loads(line) for line in keep.read_text().splitlines()]
    assert len(kept) == 2 * len(packing_study.NAMES)
    assert (tmp_path / "packing.png").stat().st_size > 10_000
    arguments = ["study", "frequency", "--quick", "--folder", str(tmp_path)]
    result = invoked(*arguments, "--master", "local[2]")
    assert result.exception is None
    assert "## The answer" in (tmp_path / "frequency.md").read_text()
