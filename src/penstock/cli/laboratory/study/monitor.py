"""`penstock study monitor`: measures how accurate and how quick the monitor is."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.errors import PenstockError
from penstock.laboratory.studies.monitor.record import Recording, record
from penstock.laboratory.studies.monitor.scenarios import MonitorRun, runs
from penstock.laboratory.studies.monitor.tables import (
    LaneScore,
    filter_scores,
    filters_markdown,
    lane_scores,
    scores_markdown,
    write_csv,
)


def monitor(
    directory: Annotated[
        Path, typer.Option("--directory", "-d", help="Where tables and pictures go.")
    ] = Path("out/study-monitor"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two short runs (about 90 s) instead of four long ones.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The seed of the random walk.")] = 1,
    attempts: Annotated[
        int, typer.Option(min=1, help="Attempts per run, if its producer is disturbed.")
    ] = 2,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Settings of the monitor under study."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Fail when a target is missed (exit code 1).")
    ] = False,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Compare the speed at the producer with the speed the monitor publishes, over time.

    It starts a broker and `penstock monitor`, produces at known speeds (steps, ramp, sine, random
    walk, bursts, many partitions, compressed or not), and writes pictures, tables and every reading
    as CSV. A run whose producer did not keep its speed is repeated.

    Examples:
    `penstock study monitor --quick`

    `penstock study monitor --directory out/monitor --set monitor.filter=exponential`

    """
    directory.mkdir(parents=True, exist_ok=True)
    recording = _record_calm(runs(quick=quick), seed, tuple(overrides or ()), attempts)
    traces = recording.traces
    scores = lane_scores(traces)
    compared = filter_scores(traces)
    write_csv(traces, directory / "readings.csv")
    (directory / "scores.md").write_text(scores_markdown(scores), encoding="utf-8")
    (directory / "filters.md").write_text(filters_markdown(compared), encoding="utf-8")
    # Imported late: only this study needs the drawing library.
    from penstock.laboratory.studies.monitor.pictures import draw_all  # noqa: PLC0415 -- see above

    for file in draw_all(traces, directory):
        say(f"wrote {file}")
    data = {
        "lanes": [_as_data(score) for score in scores],
        "filters": [asdict(one) for one in compared],
    }
    print_data(data, output, _table(scores))
    missed = [score.lane for score in scores if score.meets_targets is False]
    if missed and check:
        raise PenstockError(f"Targets were missed by: {', '.join(missed)}.")


def _record_calm(
    wanted: tuple[MonitorRun, ...], seed: int, options: tuple[str, ...], attempts: int
) -> Recording:
    """Record all runs, and repeat those whose producer did not keep a constant speed."""
    kept: dict[str, Recording] = {}
    left = wanted
    for attempt in range(1, attempts + 1):
        recording = record(left, seed=seed, monitor_options=options, say=say)
        again = []
        for run in left:
            traces = tuple(trace for trace in recording.traces if trace.run == run.name)
            one = Recording(traces, {run.name: recording.loads[run.name]})
            if run.name not in kept or _disturbed(one) <= _disturbed(kept[run.name]):
                kept[run.name] = one
            if _disturbed(one):
                again.append(run)
                say(f"attempt {attempt}: the producer of {run.name} was disturbed")
        left = tuple(again)
        if not left:
            break
    return Recording(
        tuple(trace for run in wanted for trace in kept[run.name].traces),
        {run.name: kept[run.name].loads[run.name] for run in wanted},
    )


def _disturbed(recording: Recording) -> int:
    """The number of lanes whose producer was not constant on its plateau."""
    return sum(
        score.plateau is not None and score.plateau.is_disturbed
        for score in lane_scores(recording.traces)
    )


def _as_data(score: LaneScore) -> dict[str, Any]:
    return {**asdict(score), "meets_targets": score.meets_targets}


def _table(scores: list[LaneScore]) -> Table:
    table = Table("LANE", "SETTLES", "PLATEAU", "SPREAD", "DELAY", "TARGETS", box=None)
    for score in scores:
        plateau, follow = score.plateau, score.follow
        settling_s = None if plateau is None else plateau.settling_s
        verdict = {True: "met", False: "missed", None: ""}[score.meets_targets]
        if plateau is not None and plateau.is_disturbed:
            verdict = "producer disturbed"
        table.add_row(
            score.lane,
            "" if settling_s is None else f"{settling_s:.1f} s",
            "" if plateau is None else f"{plateau.plateau_error:+.2%}",
            "" if plateau is None else f"{plateau.spread:.2%}",
            "" if follow is None else f"{follow.delay_s:.1f} s",
            verdict,
        )
    return table
