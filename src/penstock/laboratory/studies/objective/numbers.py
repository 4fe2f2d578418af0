"""The table of all numbers of the study of the objective, objective.csv: written and read again.

Hindsight takes long. Its rows stay true as long as nothing changes that leads the grid, so a later
study can take them from an earlier table.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.errors import UsageError
from penstock.laboratory.studies.objective.study import (
    HindsightSetting,
    ObjectiveRun,
    ObjectiveRunResult,
    ObjectiveStudyPlan,
)

_OF_THE_RUN = ("load", "seed", "way", "target_utilisation", "scale_down_s", "spares", "batch_s")
_NAMES = (*_OF_THE_RUN, "predicts", "consumers", "bound", "moves", "starts", "ends")


def write_numbers(
    path: Path, plan: ObjectiveStudyPlan, results: Sequence[ObjectiveRunResult], date: str
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [*_NAMES, *_share_names(plan), *_time_names(plan), *_late_names(plan), "date"]
        )
        for one in results:
            way = one.run.way
            knobs = (
                ["grid", way.target_utilisation, way.scale_down_s, way.spares, way.batch_s]
                if isinstance(way, HindsightSetting)
                else [f"objective {way:g} s", "", "", "", ""]
            )
            figures = (f"{one.consumers:.3f}", f"{one.bound:.3f}", one.moves, one.starts, one.ends)
            unknown = [None] * len(one.shares)
            times = (*(one.times or unknown), *(one.times_without_late or unknown))
            kept = ("" if part is None else f"{part:.5f}" for part in (*one.shares, *times))
            row = [one.run.shape, one.run.seed, *knobs, one.run.predicts, *figures, *kept]
            writer.writerow([*row, one.date or date])


def read_numbers(path: Path, plan: ObjectiveStudyPlan) -> list[ObjectiveRunResult]:
    """What the table says of hindsight and of predictions, for the loads of the plan."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            results = [_result(row, plan) for row in csv.DictReader(file)]
    except (OSError, KeyError, ValueError) as fault:
        message = f"{path} is no table of numbers of this study and these objectives: {fault!r}."
        remedy = "Name an objective.csv that `penstock study objective` wrote."
        raise UsageError(message, remedy=remedy) from fault
    return [
        one
        for one in results
        if one.run.shape in plan.shapes
        and one.run.seed in plan.seeds
        and (one.run.predicts or isinstance(one.run.way, HindsightSetting))
    ]


def _result(row: Mapping[str, str], plan: ObjectiveStudyPlan) -> ObjectiveRunResult:
    way: HindsightSetting | float
    if row["way"] == "grid":
        way = HindsightSetting(
            float(row["target_utilisation"]),
            int(row["scale_down_s"]),
            int(row["spares"]),
            float(row["batch_s"]),
        )
    else:
        way = float(row["way"].removeprefix("objective ").removesuffix(" s"))
    run = ObjectiveRun(way, row["load"], int(row["seed"]), plan, predicts=row["predicts"] == "True")
    # Tables from before fresh seconds were counted have neither.
    times = [row.get(name) for name in _time_names(plan)]
    without_late = [row.get(name) for name in _late_names(plan)]
    return ObjectiveRunResult(
        run,
        float(row["consumers"]),
        float(row["bound"]),
        int(row["moves"]),
        int(row["starts"]) if row["starts"] else None,
        int(row["ends"]) if row["ends"] else None,
        tuple(float(row[name]) for name in _share_names(plan)),
        _figures(times),
        _figures(without_late),
        date=row["date"],
    )


def _figures(cells: Sequence[str | None]) -> tuple[float, ...]:
    """Nothing where one of them is not said."""
    said = [cell for cell in cells if cell]
    return tuple(map(float, said)) if len(said) == len(cells) else ()


def _share_names(plan: ObjectiveStudyPlan) -> list[str]:
    return [f"share_within_{one:g}_s" for one in plan.objectives_s]


def _time_names(plan: ObjectiveStudyPlan) -> list[str]:
    # Not `time_within`: so older tables named the seconds without any late record.
    return [f"fresh_seconds_within_{one:g}_s" for one in plan.objectives_s]


def _late_names(plan: ObjectiveStudyPlan) -> list[str]:
    return [f"seconds_without_late_{one:g}_s" for one in plan.objectives_s]
