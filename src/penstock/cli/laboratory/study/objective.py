"""`penstock study objective`: is the objective kept, and what does it cost against hindsight?"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import say
from penstock.cli.laboratory.study.sweep_options import study_progress
from penstock.laboratory.studies.objective.page import write_page
from penstock.laboratory.studies.objective.study import ObjectiveStudyPlan, carry_out


def objective(
    folder: Annotated[
        Path, typer.Option(help="Where objective.md, its pictures and objective.csv are written.")
    ] = Path("docs/development/studies"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two loads, two objectives, short streams: seconds.")
    ] = False,
) -> None:
    """Lead five shapes of load with five objectives, in a simulated group.

    It counts how much is visible in time and what is paid for, and compares that with the best
    setting of a grid in hindsight. One core, about twenty minutes.

    Example: `penstock study objective --quick --folder /tmp/study`

    """
    plan = (
        ObjectiveStudyPlan(
            shapes=("minute job", "steps"),
            objectives_s=(2, 30),
            seconds=240,
            counted_from_s=60,
            partitions=8,
            utilisations=(0.85,),
            scale_downs_s=(60,),
            spares=(1,),
            batches_s=(0.4, 2.0),
        )
        if quick
        else ObjectiveStudyPlan()
    )
    runs, results = plan.runs(), []
    with study_progress("objective", len(runs)) as on_progress:
        for run in runs:
            results.append(carry_out(run))
            on_progress(len(results))
    command, date = "penstock study objective", datetime.now(UTC).date().isoformat()
    say(f"Wrote {write_page(folder, plan, results, command, date)}.")
