"""The study of the objective: its loads, its simulated group, its predictor and its report."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kit.program import invoked
from penstock.errors import UsageError
from penstock.laboratory.studies.objective.loads import PARTITION_MAX, SHAPES, made_load
from penstock.laboratory.studies.objective.numbers import read_numbers, write_numbers
from penstock.laboratory.studies.objective.page import write_page
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
    ObjectiveRunResult,
    ObjectiveStudyPlan,
    careful_runs,
    carry_out,
    carry_out_all,
    runs_to_judge,
    verdicts,
)
from penstock.laboratory.studies.objective.visible_seconds import visible_after_s
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
        seeds=(2026,),
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
    keeping = [one.consumers for one in grid if min(one.shares[0], one.times[0]) >= 0.99]
    assert (found.best is None) == (not keeping)
    if found.best is not None:
        assert found.best.consumers == min(keeping)
        assert found.extra == found.consumers / min(keeping) - 1
    own = carry_out(ObjectiveRun(10, "steps", plan.seeds[0], plan))
    assert (found.share, found.consumers) == (own.shares[0], own.consumers)
    assert found.time == own.times[0]


def result(
    plan: ObjectiveStudyPlan,
    way: HindsightSetting | float,
    share: float,
    *,
    time: float = 1.0,
    consumers: float = 10.0,
    predicts: bool = False,
) -> ObjectiveRunResult:
    run = ObjectiveRun(way, "steps", 1, plan, predicts=predicts)
    return ObjectiveRunResult(run, consumers, 5.0, 0, 3, 2, (share,), (time,), (0.9,))


def test_one_late_partition_makes_its_seconds_late() -> None:
    """Nearly all bytes are in time, but the seconds in which one partition waits are not."""
    load = np.full((400, 60), 0.01)
    load[:, 0] = 0.001
    objective = Objective(10.0)
    group = SimulatedGroup(choice_for(objective), load, Surroundings())
    group.stopped_until[0] = 250
    found = group.run(100)
    assert found.share_within(10.0) > 0.998
    assert len(found.oldest_s) == 300
    # Partition 0 is read again at 250: what was written at 90 and later waited more than 10 s.
    late = [number for number, age_s in enumerate(found.oldest_s, start=100) if age_s > 10.0]
    assert late[0] == 100
    assert 248 <= late[-1] <= 252
    assert late == list(range(late[0], late[-1] + 1))
    assert found.time_without_late(10.0) == pytest.approx(1 - len(late) / 300)
    assert found.oldest_s[100] == pytest.approx(201 + found.oldest_s[-1], abs=1.0)
    assert found.time_without_late(1_000.0) == 1.0
    # It has less than a hundredth of the bytes, so each second is fresh all the same.
    assert found.time_within(10.0) == 1.0


def test_a_second_is_fresh_when_nearly_all_that_was_written_in_it_was_visible_in_time() -> None:
    """It is as old as the share asks for, whatever the other seconds and the rest of it are."""
    written = np.cumsum(np.vstack([np.zeros(2), np.tile([95.0, 5.0], (40, 1))]), axis=0)
    carried = written.copy()
    # Partition 1 is not read in the seconds 10 to 19, and at once then.
    carried[11:20, 1] = written[10, 1]
    batch_s, cycle_s = np.full((40, 2), 0.5), np.zeros((40, 2))
    few = visible_after_s(written, carried, batch_s, cycle_s, 0.95)
    assert few == pytest.approx([0.5] * 40)
    most = visible_after_s(written, carried, batch_s, cycle_s, 0.96)
    assert most[:10] + most[20:] == pytest.approx([0.5] * 30)
    assert most[10] == pytest.approx(9.5, abs=1.0)
    assert [later < sooner for sooner, later in pairwise(most[10:20])] == [True] * 9


def test_a_second_waits_for_the_whole_of_its_batches() -> None:
    """The latest hundredth came just after a batch began; without bytes nothing is late."""
    written = np.cumsum(np.vstack([np.zeros(1), np.full((9, 1), 8.0), np.zeros((1, 1))]), axis=0)
    batch_s, cycle_s = np.full((10, 1), 1.0), np.full((10, 1), 4.0)
    found = visible_after_s(written, written, batch_s, cycle_s, 0.99)
    assert found == pytest.approx([1 + 4 * 7 / 8] * 9 + [0.0])
    never = visible_after_s(written, np.zeros((11, 1)), batch_s, cycle_s, 0.5)
    assert never[0] > 9


def test_the_stricter_of_bytes_and_time_decides() -> None:
    """For the objective's own run, for hindsight and for the prediction."""
    plan = ObjectiveStudyPlan(shapes=("steps",), objectives_s=(2,), seeds=(1,))
    cheap, dear = plan.grid()[:2]
    ahead = result(plan, 2, 0.999, time=0.97, predicts=True)
    grid = [result(plan, cheap, 0.999, time=0.98, consumers=8), result(plan, dear, 0.995)]
    (found,) = verdicts(plan, [result(plan, 2, 0.999, time=0.98), ahead, *grid])
    assert (found.share, found.time, found.kept) == (0.999, 0.98, 0.98)
    assert not found.is_kept
    assert found.predicted_share == 0.999
    assert found.best is not None
    assert found.best.run.way == dear
    assert found.highest_kept == 0.995
    (found,) = verdicts(plan, [result(plan, 2, 0.98), ahead, *grid])
    assert not found.is_kept
    (found,) = verdicts(plan, [result(plan, 2, 0.991), ahead, *grid])
    assert found.is_met
    assert careful_runs(plan, [result(plan, 2, 0.991), ahead, *grid]) == []
    assert careful_runs(plan, [result(plan, 2, 0.991), ahead, grid[0]])


def test_the_page_names_each_miss_with_its_seed(tmp_path: Path) -> None:
    """What is late in the time alone, and what is kept at too high a price."""
    plan = ObjectiveStudyPlan(shapes=("steps",), objectives_s=(2,), seeds=(1,))
    ahead = result(plan, 2, 1.0, predicts=True)
    hindsight = result(plan, plan.grid()[0], 1.0, consumers=8)
    late = [result(plan, 2, 0.999, time=0.98), ahead, hindsight]
    page = write_page(tmp_path, plan, late, "a command", "a day").read_text(encoding="utf-8")
    assert "- Seed 1: freshness is kept in 0 of 1 cases (1 by bytes, 0 by time). In 0 at" in page
    assert "| steps | 2 s | 99.90% | **98.00%** | 90.00% |" in page
    assert (
        "- seed 1, steps, 2 s: 99.90% of the bytes and 98.00% of the time instead of 99%; "
        "hindsight keeps it with 8.00 consumers, the group has 10.00." in page
    )
    own = [result(plan, 2, 0.999), ahead, hindsight]
    page = write_page(tmp_path, plan, own, "a command", "a day").read_text(encoding="utf-8")
    assert "- seed 1, steps, 2 s: kept, with +25.0% consumers instead of at most +10%." in page
    assert "The rules were chosen on loads of seed 2026, and not on these." in page
    assert page.count("+25.0% consumers") == 2
    cheap_in_bytes = [result(plan, 2, 0.999), ahead, replace(hindsight, times=(0.9,))]
    results = [*cheap_in_bytes, result(plan, plan.grid()[1], 1.0)]
    path = write_page(tmp_path, plan, results, "a command", "a day")
    found = path.read_text(encoding="utf-8").split("judged by bytes alone:")
    assert "Nowhere." in found[0]
    assert "- seed 1, steps, 2 s: kept, with +25.0% consumers" in found[1]


def test_runs_in_processes_of_their_own_have_the_same_results_in_order() -> None:
    """Two processes, as one."""
    plan = ObjectiveStudyPlan(
        shapes=("steps",),
        objectives_s=(2, 10),
        seeds=(1,),
        seconds=60,
        counted_from_s=10,
        partitions=4,
    )
    runs = [one for one in plan.runs() if not isinstance(one.way, HindsightSetting)]
    done: list[int] = []
    assert carry_out_all(runs, 2, done.append) == carry_out_all(runs, 1, lambda _: None)
    assert done == [1, 2, 3, 4]


def test_careful_settings_are_tried_only_where_no_other_keeps_the_objective() -> None:
    """What none of them keeps is told as such, with the most that one of them kept."""
    plan = ObjectiveStudyPlan(shapes=("steps",), objectives_s=(2,), seeds=(1,))
    usual, careful = plan.grid()[0], plan.careful_grid()[0]
    assert careful.target_utilisation < min(plan.utilisations)
    assert careful.batch_s == min(plan.batches_s)
    own = [result(plan, 2, 0.98), result(plan, 2, 0.98, predicts=True)]
    assert careful_runs(plan, [*own, result(plan, usual, 0.99)]) == []
    late = [*own, result(plan, usual, 0.97)]
    assert [run.way for run in careful_runs(plan, late)] == plan.careful_grid()
    (found,) = verdicts(plan, [*late, result(plan, careful, 0.985)])
    assert not found.can_be_kept
    assert found.highest_kept == 0.985
    assert (found.starts, found.ends) == (3, 2)
    (found,) = verdicts(plan, [*late, result(plan, careful, 0.995)])
    assert found.can_be_kept
    assert not found.is_met


def test_the_page_says_what_no_setting_keeps(tmp_path: Path) -> None:
    """Not as a miss of the rule alone; and how often consumers started and ended."""
    plan = ObjectiveStudyPlan(shapes=("steps",), objectives_s=(2,), seeds=(1,))
    own = [result(plan, 2, 0.98), result(plan, 2, 0.98, predicts=True)]
    late = [*own, result(plan, plan.grid()[0], 0.97)]
    page = write_page(tmp_path, plan, late, "a command", "a day").read_text(encoding="utf-8")
    assert "1 cannot be kept by any setting tried." in page
    assert "| cannot be kept by any setting tried |  | 3 | 2 | 0 |" in page
    assert "it cannot be kept by any setting tried, the best has 97.00%" in page
    kept = [*own, result(plan, plan.grid()[0], 0.99)]
    page = write_page(tmp_path, plan, kept, "a command", "a day").read_text(encoding="utf-8")
    assert "any setting tried" not in page
    assert "| 3 (3) | 2 (2) | 0 |" in page


def test_starts_and_ends_are_counted() -> None:
    """Of the time that counts: a job of every five minutes makes many, until it is known."""
    load = np.full((3000, 6), 0.12)
    load[np.arange(3000) % 300 < 30] = 0.5
    objective = Objective(10.0)
    group = SimulatedGroup(choice_for(objective), load, Surroundings(), objective)
    assert group.run(2999).starts == 0
    group = SimulatedGroup(choice_for(objective), load, Surroundings(), objective)
    found = group.run(60)
    assert 0 < found.ends <= found.starts
    group = SimulatedGroup(choice_for(objective), load, Surroundings(), objective)
    later = group.run(1800)
    assert (later.starts, later.ends) == (0, 0)
    assert group.choice.settings.policy.scale_down_period_ms > 300_000


def test_the_short_study_writes_its_report(tmp_path: Path) -> None:
    """A page with a row for each load and objective, the misses by name, pictures and numbers."""
    result = invoked("study", "objective", "--quick", "--seed", "3", "--folder", str(tmp_path))
    assert result.exit_code == 0, result.output
    page = (tmp_path / "objective.md").read_text(encoding="utf-8")
    assert "| minute job | 2 s |" in page
    assert "| steps | 30 s |" in page
    assert "Made by `penstock study objective --seed 3`" in page
    assert "## Where it misses" in page
    lines = (tmp_path / "objective.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 2 * (2 * 2 + 2)
    assert lines[0].endswith(
        "share_within_30_s,fresh_seconds_within_2_s,fresh_seconds_within_30_s,"
        "seconds_without_late_2_s,seconds_without_late_30_s,date"
    )
    for picture in ("objective-front.png", "objective-over-time.png"):
        assert (tmp_path / picture).stat().st_size > 10_000


def test_hindsight_is_taken_from_an_earlier_table(tmp_path: Path) -> None:
    """Written and read again it is the same, with its date; what it does not say is unknown."""
    plan = ObjectiveStudyPlan(shapes=("steps",), objectives_s=(2,), seeds=(1,))
    usual, careful = plan.grid()[0], plan.careful_grid()[0]
    known = result(plan, usual, 0.98, time=0.97)
    unknown = replace(
        result(plan, careful, 0.995), times=(), times_without_late=(), starts=None, ends=None
    )
    ahead = result(plan, 2, 0.999, predicts=True)
    other = replace(known, run=replace(known.run, shape="spikes"))
    path = tmp_path / "objective.csv"
    write_numbers(path, plan, [result(plan, 2, 0.99), known, unknown, ahead, other], "2026-11-17")
    read = read_numbers(path, plan)
    assert read == [replace(one, date="2026-11-17") for one in (known, unknown, ahead)]
    # What older tables named the time within an objective was that without any late record.
    table = path.read_text(encoding="utf-8")
    older = table.replace("fresh_seconds_within", "time_within").replace("seconds_without", "other")
    path.write_text(older, encoding="utf-8")
    unsaid = [replace(one, times=(), times_without_late=()) for one in read]
    assert read_numbers(path, plan) == unsaid
    page = write_page(tmp_path, plan, [result(plan, 2, 0.99), *read], "a command", "2026-11-18")
    assert "on 2026-11-18 (of 4 runs 3 are of 2026-11-17)" in page.read_text(encoding="utf-8")
    for objectives_s, text in (((2, 5), None), ((2,), "load,seed\nsteps,one\n")):
        if text is not None:
            path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match="no table of numbers"):
            read_numbers(path, replace(plan, objectives_s=objectives_s))
    with pytest.raises(UsageError, match="no table of numbers"):
        read_numbers(tmp_path / "missing.csv", plan)


def test_only_the_cheapest_of_an_earlier_table_are_carried_out_again() -> None:
    """One after the other until one is known to be in time; then nothing is left to carry out."""
    plan = ObjectiveStudyPlan(shapes=("steps",), objectives_s=(2,), seeds=(1,))
    first, second = (
        replace(result(plan, way, 0.995, consumers=consumers), times=())
        for way, consumers in zip(plan.grid()[:2], (7, 8), strict=True)
    )
    own = result(plan, 2, 0.999)
    assert runs_to_judge(plan, [own, second, first]) == [first.run]
    late = replace(first, times=(0.95,))
    assert runs_to_judge(plan, [own, second, late]) == [second.run]
    assert runs_to_judge(plan, [own, replace(second, times=(0.99,)), late]) == []
    both_late = [own, late, replace(second, times=(0.98,))]
    assert [run.way for run in runs_to_judge(plan, both_late)] == plan.careful_grid()
    tried = [result(plan, way, 0.9) for way in plan.careful_grid()]
    assert runs_to_judge(plan, [*both_late, *tried]) == []


def test_a_case_without_hindsight_is_told_as_such(tmp_path: Path) -> None:
    """Not as one that no setting keeps; and nothing more is asked for."""
    plan = ObjectiveStudyPlan(shapes=("steps",), objectives_s=(2,), seeds=(1,))
    late = [result(plan, 2, 0.98)]
    assert runs_to_judge(plan, late) == []
    page = write_page(tmp_path, plan, late, "a command", "a day").read_text(encoding="utf-8")
    assert "0 of 1 cases (0 by bytes, 1 by time). In 0 at least 99% of the seconds" in page
    assert "any late record. None is compared with hindsight." in page
    assert "| not tried |" in page
    assert "instead of 99%; hindsight was not tried." in page


def test_the_short_study_takes_hindsight_from_an_earlier_one(tmp_path: Path) -> None:
    """The verdicts are the same, and a load that does not exist is refused."""
    quick = ("study", "objective", "--quick", "--seed", "3", "--load", "steps", "--folder")
    first, again = tmp_path / "first", tmp_path / "again"
    made = invoked(*quick, str(first))
    assert made.exit_code == 0, made.output
    made = invoked(*quick, str(again), "--earlier", str(first / "objective.csv"))
    assert made.exit_code == 0, made.output
    pages = [(folder / "objective.md").read_text(encoding="utf-8") for folder in (first, again)]
    tables = [[line for line in page.splitlines() if line.startswith("|")] for page in pages]
    assert tables[0] == tables[1]
    assert "--load steps --earlier objective.csv`" in pages[1]
    refused = invoked(*quick, str(again), "--load", "storm")
    assert refused.exit_code != 0
    assert "There is no load 'storm'" in str(refused.exception)
