"""`penstock study packing`: repeats the published comparison and adds our algorithm."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import say
from penstock.cli.laboratory.study.sweep_options import SparkMaster, study_progress
from penstock.errors import UsageError
from penstock.laboratory.studies.packing.exact import gap_to_optimum, is_available
from penstock.laboratory.studies.packing.faithfulness import closeness
from penstock.laboratory.studies.packing.published import R_OF_MWF_MAX
from penstock.laboratory.studies.packing.report import write_page
from penstock.laboratory.studies.packing.study import (
    PackingRun,
    PackingRunResult,
    PackingStudyPlan,
    carry_out,
    from_line,
    scores,
    to_line,
)
from penstock.laboratory.studies.sweep import MASTER_DEFAULT, spread

EXACT_SEEDS = range(101, 105)


def packing(
    master: SparkMaster = MASTER_DEFAULT,
    folder: Annotated[
        Path, typer.Option(help="Where packing.md, packing.png and packing.csv are written.")
    ] = Path("docs/development/studies"),
    seeds: Annotated[
        str, typer.Option(help="Seeds of the streams with uniform start, with commas.")
    ] = "1,2,3",
    other_seeds: Annotated[
        str, typer.Option(help="Seeds of the streams that start all at 0, 50 or 100.")
    ] = "1",
    published_seeds: Annotated[
        str,
        typer.Option(help="Further seeds for comparing the twelve with the published table."),
    ] = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
    starts: Annotated[
        str, typer.Option(help="Starting speeds, with commas: uniform, or a percentage for all.")
    ] = "uniform,0,50,100",
    deltas: Annotated[
        str, typer.Option(help="Largest steps, in percent of a consumer, with commas.")
    ] = "0,5,10,15,20,25",
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Keep finished runs in this file and skip runs that are already in it.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few short streams: a minute instead of half an hour.")
    ] = False,
) -> None:
    """Run the twelve published algorithms and CHAIN on the published streams.

    PySpark distributes the runs over cores or a cluster. The whole study takes about half an hour
    on two cores.

    Examples:
    `penstock study packing --quick --folder /tmp/study`

    `penstock study packing --master spark://head:7077 --seeds 1,2,3,4,5`

    """
    plan = (
        PackingStudyPlan(
            starts=("uniform",),
            deltas=(0, 25),
            seeds=(1,),
            seeds_of_published=(1,),
            measurements=31,
        )
        if quick
        else PackingStudyPlan(
            starts=tuple(starts.split(",")),
            deltas=_numbers(deltas),
            seeds=_numbers(seeds),
            seeds_of_other_starts=_numbers(other_seeds),
            seeds_of_published=_numbers(published_seeds),
        )
    )
    kept = _kept(keep)
    tasks = [task for task in (*plan.tasks(), *plan.tasks_of_published()) if task not in kept]
    with study_progress("packing", len(tasks)) as on_progress:
        spread(
            tasks,
            carry_out,
            master=master,
            on_progress=on_progress,
            on_results=lambda results: _keep(keep, kept, results),
        )
    outcomes = [kept[task] for task in plan.tasks()]
    more = [kept[task] for task in plan.tasks_of_published()]
    deltas_published = [delta for delta in plan.deltas if delta in R_OF_MWF_MAX]
    close = closeness([*outcomes, *more], deltas_published)
    gap = None
    if is_available():
        say("Solving small cases exactly ...")
        gap = gap_to_optimum(EXACT_SEEDS[:1] if quick else EXACT_SEEDS)
    else:
        say("ortools is not installed, so the comparison with the exact optimum is skipped.")
    made_by = f"`penstock study packing` on {datetime.now(UTC).date().isoformat()}"
    page = write_page(folder, plan, scores(outcomes), close, gap, made_by)
    say(f"Wrote {page}.")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(number) for number in text.split(",")}))
    except ValueError as error:
        raise UsageError(f"Expected whole numbers with commas, got {text!r}.") from error


def _kept(keep: Path | None) -> dict[PackingRun, PackingRunResult]:
    if keep is None or not keep.exists():
        return {}
    outcomes = [from_line(line) for line in keep.read_text(encoding="utf-8").splitlines()]
    return {outcome.run: outcome for outcome in outcomes}


def _keep(
    keep: Path | None, kept: dict[PackingRun, PackingRunResult], results: Sequence[PackingRunResult]
) -> None:
    kept.update((outcome.run, outcome) for outcome in results)
    if keep is not None:
        with keep.open("a", encoding="utf-8") as file:
            file.writelines(to_line(outcome) + "\n" for outcome in results)
