"""`penstock study objective`: is the objective kept, and what does it cost against hindsight?"""

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import say
from penstock.cli.laboratory.study.sweep_options import study_progress
from penstock.errors import UsageError
from penstock.laboratory.studies.objective.loads import SHAPES
from penstock.laboratory.studies.objective.numbers import read_numbers
from penstock.laboratory.studies.objective.page import write_page
from penstock.laboratory.studies.objective.study import (
    ObjectiveStudyPlan,
    carry_out_all,
    runs_to_judge,
)

_LOADS = ", ".join(SHAPES)


def objective(
    folder: Annotated[
        Path, typer.Option(help="Where objective.md, its pictures and objective.csv are written.")
    ] = Path("docs/development/studies"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two loads, two objectives, short streams: seconds.")
    ] = False,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            help="Make the loads with this seed; may be given again. Without it: 2026, on which "
            "the rules were chosen, and 7, on which they were not.",
        ),
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(help=f"Only this shape of load; may be given again: {_LOADS}."),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            help="Take hindsight and predictions from this objective.csv; may be given again. "
            "Then only the objectives' own runs are carried out, and the settings of hindsight "
            "that must be known to judge: minutes.",
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="How many runs are carried out at the same time.")
    ] = 1,
) -> None:
    """Lead five shapes of load with five objectives, in a simulated group.

    It counts how much is visible in time, how many of the seconds are fresh, and what is paid for,
    and compares that with the best setting of a grid in hindsight. About ten minutes of one idle
    core for each seed.

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
            careful_utilisations=(0.5,),
            careful_spares=(1,),
        )
        if quick
        else ObjectiveStudyPlan()
    )
    for unknown in set(load or ()) - set(SHAPES):
        raise UsageError(f"There is no load '{unknown}'.", remedy=f"Take one of {_LOADS}.")
    plan = replace(
        plan,
        seeds=tuple(dict.fromkeys(seed or plan.seeds)),
        shapes=tuple(one for one in SHAPES if one in (load or plan.shapes)),
    )
    results = {one.run: one for path in earlier or () for one in read_numbers(path, plan)}
    runs = plan.own_runs() if earlier else plan.runs()
    name = "objective"
    while runs:
        with study_progress(name, len(runs)) as on_progress:
            done = carry_out_all(runs, processes, on_progress)
        results |= {one.run: one for one in done}
        runs, name = runs_to_judge(plan, list(results.values())), "hindsight"
    asked = (
        *(f"--seed {one}" for one in seed or ()),
        *(f"--load {shlex.quote(one)}" for one in load or ()),
        *(f"--earlier {one.name}" for one in earlier or ()),
    )
    command, date = " ".join(["penstock study objective", *asked]), datetime.now(UTC).date()
    page = write_page(folder, plan, list(results.values()), command, date.isoformat())
    say(f"Wrote {page}.")
