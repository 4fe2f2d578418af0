"""Writes the report of the frequency study, with its picture and its numbers."""

import csv
from collections.abc import Iterable, Sequence
from math import fsum
from pathlib import Path

from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.laboratory.studies.frequency.study import (
    INTERVAL_S,
    LOADS,
    MOVE_S,
    FrequencyRunResult,
    FrequencyStudyPlan,
    Setting,
    best,
    mean_cost,
)
from penstock.laboratory.studies.played_runs import lines_about_playing

WEIGHTS = (1.0, 3.0, 10.0, 30.0)
WEIGHT_CHOSEN = 10.0
"""A late partition weighs as much as ten idle consumers: lateness is what Penstock avoids."""


def write_page(
    folder: Path,
    plan: FrequencyStudyPlan,
    outcomes: Sequence[FrequencyRunResult],
    variants: Sequence[FrequencyRunResult],
    command: str,
    date: str,
) -> Path:
    """Write frequency.md, frequency.png and frequency.csv into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_numbers(folder / "frequency.csv", [*outcomes, *variants])
    _draw(folder / "frequency.png", plan, outcomes)
    page = folder / "frequency.md"
    lines = _lines(plan, outcomes, variants, command, date)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return page


def _lines(
    plan: FrequencyStudyPlan,
    outcomes: Sequence[FrequencyRunResult],
    variants: Sequence[FrequencyRunResult],
    command: str,
    date: str,
) -> Iterable[str]:
    chosen = best(outcomes, WEIGHT_CHOSEN)
    yield "# Study: how often to repack"
    yield ""
    yield f"Made by `{command}` on {date}. Do not edit: run it again."
    yield ""
    yield (
        f"{plan.partitions} partitions, a measurement every {INTERVAL_S:g} s for an hour, seeds "
        f"{', '.join(map(str, plan.seeds))}, through the live trigger with CHAIN at its default "
        f"knob. Loads: {', '.join(LOADS)} (the wave is a whole day squeezed into the hour). "
        "The cost of a setting is the consumer-seconds it pays plus the partition-seconds it makes "
        f"late (a move: {MOVE_S:g} s; a second over capacity: every partition of that consumer), "
        "weighed, per consumer-second that the lower bound needs; 1 cannot be beaten. All numbers "
        "are in [frequency.csv](frequency.csv)."
    )
    yield ""
    yield "## The answer"
    yield ""
    yield "| weight of a late second | best: ask every, hysteresis, scale-down period | cost |"
    yield "|---|---|---|"
    for weight in WEIGHTS:
        setting = best(outcomes, weight)
        cost = mean_cost(outcomes, setting, weight)
        yield f"| {weight:g} | {setting.explanation} | {cost:.3f} |"
    yield ""
    yield (
        f"Weight {WEIGHT_CHOSEN:g} decides the default: a late partition is what the product "
        "exists to avoid."
    )
    yield ""
    yield "![Cost by hysteresis and period](frequency.png)"
    yield ""
    yield f"## What the best setting ({chosen.explanation}) does on each load, per hour"
    yield ""
    yield from _by_load([one for one in outcomes if one.run.setting == chosen])
    yield ""
    yield "## The same setting with other algorithms, knobs and look-ahead"
    yield ""
    yield "Means over all loads and seeds, per hour."
    yield ""
    yield from _variants(variants)
    yield ""
    yield from lines_about_playing(
        [
            f"penstock simulate --generate {kind} --delta {delta} --partitions {plan.partitions} "
            f"--measurements {plan.measurements} --seed {plan.seeds[0]} --trigger "
            f"--export {kind}.html"
            for kind, delta in LOADS.values()
        ]
    )


def _by_load(outcomes: Sequence[FrequencyRunResult]) -> Iterable[str]:
    yield "| load | consumers | lower bound | moves | seconds over capacity | repacks |"
    yield "|---|---|---|---|---|---|"
    for load in LOADS:
        yield f"| {load} | {_numbers([one for one in outcomes if one.run.load == load])} |"


def _variants(variants: Sequence[FrequencyRunResult]) -> Iterable[str]:
    yield (
        "| algorithm | look-ahead | consumers | lower bound | moves | seconds over capacity "
        f"| repacks | cost at weight {WEIGHT_CHOSEN:g} |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    seen: dict[Setting, None] = dict.fromkeys(one.run.setting for one in variants)
    for setting in seen:
        ran = [one for one in variants if one.run.setting == setting]
        cost = mean_cost(ran, setting, WEIGHT_CHOSEN)
        yield (
            f"| {setting.algorithm} | {setting.look_ahead_s:g} s | {_numbers(ran)} | {cost:.3f} |"
        )


def _numbers(outcomes: Sequence[FrequencyRunResult]) -> str:
    count = len(outcomes)
    columns = (
        fsum(one.consumer_hours for one in outcomes) / count,
        fsum(one.bound_hours for one in outcomes) / count,
        fsum(one.moves for one in outcomes) / count,
        fsum(one.over_capacity_s for one in outcomes) / count,
        fsum(one.repacks for one in outcomes) / count,
    )
    return " | ".join(f"{column:.1f}" for column in columns)


def _write_numbers(path: Path, outcomes: Sequence[FrequencyRunResult]) -> None:
    names = "period_s hysteresis scale_down_period_s algorithm look_ahead_s load seed "
    names += "consumers lower_bound moves_per_hour over_capacity_s_per_hour repacks_per_hour"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names.split())
        for one in outcomes:
            s = one.run.setting
            numbers = (
                one.consumer_hours,
                one.bound_hours,
                one.moves,
                one.over_capacity_s,
                one.repacks,
            )
            writer.writerow(
                [
                    f"{s.period_s:g}",
                    f"{s.hysteresis:g}",
                    f"{s.scale_down_period_s:g}",
                    s.algorithm,
                    f"{s.look_ahead_s:g}",
                    one.run.load,
                    one.run.seed,
                    *(f"{number:.3f}" for number in numbers),
                ]
            )


def _draw(path: Path, plan: FrequencyStudyPlan, outcomes: Sequence[FrequencyRunResult]) -> None:
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(plan.scale_down_periods_s), sharey=True, squeeze=False)[0]
    colours = colormaps["viridis"]
    for axes, scale_down_s in zip(panels, plan.scale_down_periods_s, strict=True):
        for number, period_s in enumerate(plan.periods_s):
            costs = [
                mean_cost(outcomes, Setting(period_s, h, scale_down_s), WEIGHT_CHOSEN)
                for h in plan.hystereses
            ]
            axes.plot(
                [100 * h for h in plan.hystereses],
                costs,
                "o-",
                color=colours(number / max(1, len(plan.periods_s) - 1) * 0.8),
                label=f"asked every {period_s:g} s",
            )
        axes.set_title(f"looks for fewer every {scale_down_s:g} s")
        axes.set_xlabel("hysteresis, percent of capacity")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel(f"cost (late seconds weigh {WEIGHT_CHOSEN:g})")
    panels[-1].legend()
    figure.savefig(path, dpi=100)
