"""`penstock study frequency`: compares how often to repack and how much capacity to keep free."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import say
from penstock.cli.laboratory.study.sweep_options import SparkMaster, study_progress
from penstock.laboratory.studies.frequency.report import WEIGHT_CHOSEN, write_page
from penstock.laboratory.studies.frequency.study import FrequencyStudyPlan, best, carry_out
from penstock.laboratory.studies.sweep import MASTER_DEFAULT, spread


def frequency(
    master: SparkMaster = MASTER_DEFAULT,
    folder: Annotated[
        Path, typer.Option(help="Where frequency.md, frequency.png and frequency.csv are written.")
    ] = Path("docs/development/studies"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two settings, short streams: half a minute.")
    ] = False,
) -> None:
    """Replay five kinds of load through the controller's trigger under many policies.

    It counts consumer-hours, moves per hour and seconds over capacity. PySpark distributes the
    runs; the whole study takes a few minutes on two cores.

    Examples:
    `penstock study frequency --quick --folder /tmp/study`

    """
    plan = (
        FrequencyStudyPlan(
            periods_s=(5, 30),
            hystereses=(0, 0.1),
            scale_down_periods_s=(60,),
            seeds=(11,),
            measurements=61,
            knobs=(0.5,),
            look_aheads_s=(30,),
        )
        if quick
        else FrequencyStudyPlan()
    )
    runs = plan.runs_of(plan.settings())
    with study_progress("frequency", len(runs)) as on_progress:
        outcomes = spread(runs, carry_out, master=master, on_progress=on_progress)
    runs = plan.runs_of(plan.variants(best(outcomes, WEIGHT_CHOSEN)))
    with study_progress("variants", len(runs)) as on_progress:
        variants = spread(runs, carry_out, master=master, on_progress=on_progress)
    command, date = "penstock study frequency", datetime.now(UTC).date().isoformat()
    say(f"Wrote {write_page(folder, plan, outcomes, variants, command, date)}.")
