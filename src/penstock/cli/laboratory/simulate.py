"""`penstock simulate`: replays write speeds through packing algorithms, without a cluster."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, TextIO

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, notes, print_data, say
from penstock.cli.options import Overrides, SettingsFile, effective_settings
from penstock.controller.core.settings import controller_settings
from penstock.errors import UsageError
from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.laboratory.packing_replay.replay import (
    OnEveryMeasurement,
    ReplayStep,
    ThroughTrigger,
    lower_bounds,
    replay,
)
from penstock.laboratory.packing_replay.simulated_run import SimulatedRun, results_of
from penstock.laboratory.packing_replay.stream import Stream, read_stream
from penstock.laboratory.packing_replay.summary import Summary, summarise, table
from penstock.model import Assignment
from penstock.packing import DEFAULT, PUBLISHED, PackingAlgorithm, algorithm_named
from penstock.packing.chain import ChainPacking
from penstock.settings import LoadedSettings
from penstock.settings.sections import PackingSettings
from penstock.settings.units import parse_duration, parse_speed

LEGEND = (
    "CBS: consumers above the fewest of the algorithms compared, as a share (0 is best). R: load "
    "that a repack moves, in consumers' worth (0 moves nothing)."
)
GENERATED_CAPACITY = "100"
FRONT_KNOBS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)


def simulate(
    stream: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Recorded speeds: a header of topic-partition names, then one row of bytes/s "
            "per measurement.",
        ),
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--generate", help="Generate a stream instead.")
    ] = None,
    partitions: Annotated[int, typer.Option(help="Generated: number of partitions.")] = 200,
    delta: Annotated[
        int, typer.Option(help="Generated: largest step (or noise), in percent of capacity.")
    ] = 10,
    measurements: Annotated[int, typer.Option(help="Generated: rows, the first included.")] = 501,
    seed: Annotated[int, typer.Option(help="Generated: the same seed gives the same stream.")] = 0,
    start: Annotated[
        str, typer.Option(help="Generated: `uniform`, or one percentage for all.")
    ] = "uniform",
    capacity: Annotated[
        str | None,
        typer.Option(
            help="The capacity of one consumer, in bytes/s or like 1.5MB/s. Default: 100 for a "
            "generated stream, else the setting packing.capacity.",
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="May be repeated. A name (see docs/sizing.md), `CHAIN@0.3` for a knob, "
            "`published` for the twelve, `front` for CHAIN with seven knobs, or `all`. "
            "Default: the algorithm in the settings.",
        ),
    ] = None,
    knob: Annotated[
        float | None,
        typer.Option(
            help="CHAIN's balance: 0 is fewest consumers, 1 is fewest moves. Refused when no "
            "chosen algorithm uses it."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--every", help="Pack on every measurement (the default).")
    ] = False,
    trigger: Annotated[
        bool, typer.Option("--trigger", help="Pack when the live controller would.")
    ] = False,
    interval: Annotated[str, typer.Option(help="Time between two measurements.")] = "5s",
    assignments: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.jsonl",
            help="Write the assignment, one line per measurement. With several algorithms one "
            "file each: OUT.MWF.jsonl, OUT.CHAIN.jsonl.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result: a .png or .html file.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE.html",
            help="Write the run as one HTML file that can be played in a browser. With several "
            "algorithms one file each: FILE.MWF.html, FILE.CHAIN.html.",
        ),
    ] = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show how many consumers each packing algorithm would use, and how much it would move.

    It touches no cluster: speeds are generated, or come from a file such as
    `penstock recommend --record speeds.csv` writes. CBS is the share of consumers above the fewest
    of the algorithms compared; R is the load that a repack moves, in consumers' worth.

    Examples:
    `penstock simulate --generate walk --delta 5`

    `penstock simulate --stream speeds.csv --capacity 2MB/s --algorithm all --plot all.html`

    `penstock simulate --generate wave --trigger --assignments assignments.jsonl`

    `penstock simulate --generate wave --partitions 60 --trigger --export wave.html`

    """
    if (stream is None) == (kind is None):
        raise UsageError("Give either --stream FILE.csv or --generate KIND.")
    if every and trigger:
        raise UsageError("Give either --every or --trigger.")
    if plot is not None:
        _check_format(plot)
    if export is not None and export.suffix != ".html":
        raise UsageError(f"--export writes an .html file, got {export}")
    loaded = effective_settings(settings, overrides)
    packing = loaded.settings.packing
    carried = _capacity(capacity, packing, generated=kind is not None)
    chosen = _algorithms(algorithm, knob, packing)
    speeds = (
        read_stream(stream)
        if stream is not None
        else _generated(kind, partitions, delta, measurements, seed, start, carried)
    )
    interval_s = _interval(interval)
    mode = _mode(loaded, carried, speeds, interval_s if trigger else None)
    runs = (
        {one.name: SimulatedRun(one.name, speeds, mode, interval_s) for one in chosen}
        if export is not None
        else {}
    )
    summaries, last = _run(chosen, speeds, mode, assignments, runs)
    bounds = lower_bounds(speeds, carried)
    rows = table(summaries, bounds, interval_s)
    for row, (name, run) in zip(rows, runs.items(), strict=False):
        _write_run(run, _path_for(export, name, several=len(chosen) > 1), row)
    if plot is not None:
        _plot(plot, rows, summaries, bounds, (chosen[0].name, last), speeds, carried)
    print_data(rows, output, _as_table(rows, triggered=trigger))
    if output is OutputFormat.TABLE:
        say(LEGEND)


def _capacity(given: str | None, packing: PackingSettings, *, generated: bool) -> float:
    if given is None and not generated:
        return packing.first_capacity_bytes_per_s
    text = GENERATED_CAPACITY if given is None else given
    try:
        value = float(text)
    except ValueError:
        try:
            value = parse_speed(text)
        except ValueError as error:
            raise UsageError(f"--capacity: {error}") from error
    if not (isfinite(value) and value > 0):
        raise UsageError(f"--capacity is a finite number > 0, got {text}")
    return value


def _algorithms(
    names: Sequence[str] | None, knob: float | None, packing: PackingSettings
) -> list[PackingAlgorithm]:
    """The algorithms that `--algorithm` names, each once, in that order."""
    if not names and knob is None:
        return [packing.chosen_algorithm()]
    given = names or [packing.algorithm]
    chosen: dict[str, PackingAlgorithm] = {}
    try:
        for name in given:
            chosen.update((one.name, one) for one in _named(name, knob))
    except ValueError as error:
        raise UsageError(f"{error}", remedy="docs/sizing.md describes the algorithms.") from error
    if knob is not None and not any(_uses_knob(name) for name in given):
        raise UsageError(
            f"--knob {knob:g} has no effect on {', '.join(given)}. {DEFAULT.name} has a knob; "
            f"{DEFAULT.name}@0.3 and `front` set it themselves; "
            f"{', '.join(one.name for one in PUBLISHED)} have none.",
            remedy=f"Leave --knob out, or add --algorithm {DEFAULT.name}.",
        )
    return list(chosen.values())


def _named(name: str, knob: float | None) -> list[PackingAlgorithm]:
    groups: dict[str, list[PackingAlgorithm]] = {
        "all": [algorithm_named(DEFAULT.name, knob), *PUBLISHED],
        "published": list(PUBLISHED),
        "front": [ChainPacking(each) for each in FRONT_KNOBS],
    }
    return groups.get(name.strip().lower()) or [algorithm_named(name, knob)]


def _uses_knob(name: str) -> bool:
    """Whether the name stands for CHAIN without a knob of its own, alone or among others."""
    return name.strip().upper() in {DEFAULT.name, "ALL"}


def _generated(
    kind: Kind | None,
    partitions: int,
    delta: int,
    measurements: int,
    seed: int,
    start: str,
    capacity: float,
) -> Stream:
    assert kind is not None  # noqa: S101 -- checked where options are
    try:
        recipe = Recipe(kind, partitions, delta, measurements, seed, start)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    return generate(recipe, capacity)


def _interval(text: str) -> float:
    try:
        interval_s = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--interval: {error}") from error
    if interval_s <= 0:
        raise UsageError("--interval must be longer than 0s")
    return interval_s


def _mode(
    loaded: LoadedSettings, capacity: float, stream: Stream, interval_s: float | None
) -> OnEveryMeasurement | ThroughTrigger:
    """The live controller's policy, with the capacity of the simulation.

    A simulation shows how many consumers a load needs, so only a maximum that was set bounds it.
    """
    policy = replace(controller_settings(loaded.settings).policy, capacity_bytes_per_s=capacity)
    if ("controller", "consumers_max") not in loaded.origin:
        policy = replace(policy, consumers_max=len(stream.partitions))
    if interval_s is not None:
        return ThroughTrigger(policy, interval_s)
    return OnEveryMeasurement(capacity, policy.partitions_per_consumer_max, policy.consumers_max)


def _run(
    algorithms: Sequence[PackingAlgorithm],
    stream: Stream,
    mode: OnEveryMeasurement | ThroughTrigger,
    assignments: Path | None,
    runs: Mapping[str, SimulatedRun],
) -> tuple[list[Summary], Assignment]:
    """Replay every algorithm; also return the first one's last assignment.

    `runs` are those that are kept for the page.
    """
    summaries: list[Summary] = []
    lasts: list[Assignment] = []
    with _progress() as progress:
        for algorithm in algorithms:
            path = _path_for(assignments, algorithm.name, several=len(algorithms) > 1)
            steps = replay(algorithm, stream, mode, perf_counter)
            seen = progress.track(steps, total=len(stream), description=algorithm.name)
            kept = []
            for step in _written(seen, path):
                kept.append(step)
                if algorithm.name in runs:
                    runs[algorithm.name].add(step)
            lasts.append(kept[-1].assignment)
            summaries.append(summarise(algorithm.name, kept))
    return summaries, lasts[0]


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
    )


def _path_for(file: Path | None, name: str, *, several: bool) -> Path | None:
    if file is None or not several:
        return file
    return file.with_name(f"{file.stem}.{name}{file.suffix}")


def _write_run(run: SimulatedRun, file: Path | None, row: Mapping[str, Any]) -> None:
    if file is not None:
        run.write(file, results_of(row))
        say(f"Wrote {file}: open it in a browser.")


def _written(steps: Iterator[ReplayStep] | Any, path: Path | None) -> Iterator[ReplayStep]:
    """Pass the steps on, and write each as a line if there is a file."""
    if path is None:
        yield from steps
        return
    try:
        file: TextIO = path.open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    with file:
        for step in steps:
            file.write(assignment_line(step) + "\n")
            yield step
    say(f"Wrote {path}.")


def assignment_line(step: ReplayStep) -> str:
    """`{"measurement": 0, "consumers": {"1": ["orders-0"]}}`, without idle consumers."""
    held = step.assignment
    consumers = {str(c): [str(p) for p in sorted(held[c])] for c in held if held[c]}
    return json.dumps({"measurement": step.measurement, "consumers": consumers})


def _check_format(path: Path) -> None:
    """Before the simulation runs. Only pictures need the extra `laboratory`."""
    from penstock.laboratory.packing_replay.picture import check_format  # noqa: PLC0415 -- needs an extra

    check_format(path)


def _plot(
    path: Path,
    rows: Sequence[Any],
    summaries: Sequence[Summary],
    bounds: Sequence[int],
    last: tuple[str, Assignment],
    stream: Stream,
    capacity: float,
) -> None:
    from penstock.laboratory.packing_replay.picture import (  # noqa: PLC0415 -- only with --plot
        Picture,
        draw,
    )

    picture = Picture(
        rows=rows,
        consumers={summary.algorithm: summary.consumers for summary in summaries},
        lower_bounds=bounds,
        packing_of=last[0],
        assignment=last[1],
        write_speed_bytes_per_s=stream.speeds(len(stream) - 1),
        capacity_bytes_per_s=capacity,
    )
    try:
        draw(picture, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    say(f"Drew {path}.")


def _as_table(rows: Sequence[Any], *, triggered: bool) -> Table:
    columns = {
        "algorithm": "algorithm",
        "consumers_mean": "consumers",
        "consumers_max": "max",
        "cbs": "CBS",
        "r": "R",
        "moves": "moves",
        "time_per_run_ms": "ms/run",
    }
    if triggered:
        columns |= {
            "runs": "runs",
            "moves_per_hour": "moves/h",
            "over_capacity_s": "s over",
        }
    shown = Table(box=None, pad_edge=False)
    for name, title in columns.items():
        shown.add_column(title, justify="left" if name == "algorithm" else "right")
    for row in rows:
        shown.add_row(*(f"{row[name]:g}" if name != "algorithm" else row[name] for name in columns))
    return shown
