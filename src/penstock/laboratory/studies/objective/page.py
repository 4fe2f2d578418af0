"""Writes the report of the study of the objective, with its pictures and its numbers."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.laboratory.studies.objective.simulated_group import BATCH_FIXED_S, Surroundings
from penstock.laboratory.studies.objective.study import (
    EXTRA_MAX,
    SHARE,
    HindsightSetting,
    ObjectiveRunResult,
    ObjectiveStudyPlan,
    Verdict,
    verdicts,
)

_DRAWN_EVERY_S = 10


def write_page(
    folder: Path,
    plan: ObjectiveStudyPlan,
    results: Sequence[ObjectiveRunResult],
    command: str,
    date: str,
) -> Path:
    """Write objective.md, objective.csv and two pictures into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = verdicts(plan, results)
    _write_numbers(folder / "objective.csv", plan, results)
    _draw_front(folder / "objective-front.png", plan, found)
    _draw_over_time(folder / "objective-over-time.png", plan, results)
    page = folder / "objective.md"
    page.write_text("\n".join(_lines(plan, found, command, date)) + "\n", encoding="utf-8")
    return page


def _lines(
    plan: ObjectiveStudyPlan, found: Sequence[Verdict], command: str, date: str
) -> Iterable[str]:
    kept = sum(one.is_kept for one in found)
    met = sum(one.is_met for one in found)
    surroundings = Surroundings()
    yield "# Study: is the objective kept, and what does it cost?"
    yield ""
    yield f"Made by `{command}` on {date}. Do not edit: run it again."
    yield ""
    yield (
        f"{plan.partitions} partitions, a measurement every second for {plan.seconds / 60:g} "
        f"minutes, of which the first {plan.counted_from_s / 60:g} are for learning and do not "
        f"count; seeds {', '.join(map(str, plan.seeds))}, which no test uses. The live trigger, "
        "packer, speed memory and objective lead a simulated group: a consumer starts in "
        f"{surroundings.start_s} s, a move stops a partition for {surroundings.move_s:g} s and "
        f"half a batch, a batch has {BATCH_FIXED_S:g} s of fixed cost, so short batches carry "
        "less. The daily wave "
        "is a day squeezed into an hour: it rises 24 times as fast as a real one."
    )
    yield ""
    yield (
        f"*Kept* is the share of all bytes that were visible within the objective; wanted is "
        f"{SHARE:.0%}. *Consumers* is what was paid for on average, spares and starts included. "
        f"*Hindsight* is the cheapest of {len(plan.grid())} settings (how full, how long peaks are "
        "kept, spares, batch time) that keeps the objective on that very load: nobody can know it "
        f"before. Wanted is at most {EXTRA_MAX:.0%} more than that."
    )
    yield ""
    yield "## The answer"
    yield ""
    yield (
        f"Freshness is kept in {kept} of {len(found)} cases; in {met} of {len(found)} the group "
        f"also costs at most {EXTRA_MAX:.0%} more than the best in hindsight."
    )
    yield ""
    yield "![Consumers and freshness](objective-front.png)"
    yield ""
    yield from _table(found)
    yield ""
    yield "## Where it misses"
    yield ""
    yield from _misses(found)
    yield ""
    yield "## Over time"
    yield ""
    yield "Consumers that are paid for, against the least that could carry the load."
    yield ""
    yield "![Over time](objective-over-time.png)"
    yield ""
    yield "## Does a prediction earn its place?"
    yield ""
    yield (
        "The same objectives, with a predictor that finds the period of the load and plans for the "
        "highest speed of each partition one period ago, half a minute ahead. It wins where it "
        "keeps the objective with fewer consumers, or keeps one that the trend alone does not."
    )
    yield ""
    yield from _predictions(found)
    yield ""
    yield "All numbers are in [objective.csv](objective.csv)."


def _table(found: Sequence[Verdict]) -> Iterable[str]:
    yield ("| load | objective | kept | consumers | needed at least | hindsight | more | moves |")
    yield "|---|---|---|---|---|---|---|---|"
    for one in found:
        best = "none keeps it" if one.best is None else f"{one.best.consumers:.2f}"
        extra = "" if one.extra is None else f"{one.extra:+.0%}"
        kept = f"{one.share:.2%}" if one.is_kept else f"**{one.share:.2%}**"
        yield (
            f"| {one.shape} | {one.objective_s:g} s | {kept} | {one.consumers:.2f} | "
            f"{one.bound:.2f} | {best} | {extra} | {one.moves} |"
        )


def _misses(found: Sequence[Verdict]) -> Iterable[str]:
    late = [one for one in found if not one.is_kept]
    dear = [one for one in found if one.is_kept and not one.is_met]
    if not late and not dear:
        yield "Nowhere."
    for one in late:
        hindsight = (
            "no setting of the grid keeps it either"
            if one.best is None
            else f"hindsight keeps it with {one.best.consumers:.2f} consumers"
        )
        yield (
            f"- {one.shape}, {one.objective_s:g} s: {one.share:.2%} instead of {SHARE:.0%}; "
            f"{hindsight}."
        )
    for one in dear:
        yield f"- {one.shape}, {one.objective_s:g} s: kept, with {one.extra:+.0%} consumers."


def _predictions(found: Sequence[Verdict]) -> Iterable[str]:
    yield "| load | objective | kept | with prediction | consumers | with prediction |"
    yield "|---|---|---|---|---|---|"
    for one in found:
        yield (
            f"| {one.shape} | {one.objective_s:g} s | {one.share:.2%} | "
            f"{one.predicted_share:.2%} | {one.consumers:.2f} | {one.predicted_consumers:.2f} |"
        )


def _write_numbers(
    path: Path, plan: ObjectiveStudyPlan, results: Sequence[ObjectiveRunResult]
) -> None:
    names = "load seed way target_utilisation scale_down_s spares batch_s predicts consumers "
    names += "bound moves"
    shares = [f"share_within_{one:g}_s" for one in plan.objectives_s]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names.split(), *shares])
        for one in results:
            way = one.run.way
            knobs = (
                ["grid", way.target_utilisation, way.scale_down_s, way.spares, way.batch_s]
                if isinstance(way, HindsightSetting)
                else [f"objective {way:g} s", "", "", "", ""]
            )
            figures = (f"{one.consumers:.3f}", f"{one.bound:.3f}", one.moves)
            kept = (f"{share:.5f}" for share in one.shares)
            writer.writerow(
                [one.run.shape, one.run.seed, *knobs, one.run.predicts, *figures, *kept]
            )


def _draw_front(path: Path, plan: ObjectiveStudyPlan, found: Sequence[Verdict]) -> None:
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    kept, cost = figure.subplots(1, 2)
    shades = colormaps["viridis"]
    for number, shape in enumerate(plan.shapes):
        own = [one for one in found if one.shape == shape and one.seed == plan.seeds[0]]
        colour = shades(number / max(1, len(plan.shapes) - 1) * 0.85)
        at = [one.objective_s for one in own]
        kept.plot(at, [100 * one.share for one in own], "o-", color=colour, label=shape)
        cost.plot(at, [one.consumers / one.bound for one in own], "o-", color=colour, label=shape)
        best = [(o.objective_s, o.best.consumers / o.bound) for o in own if o.best is not None]
        cost.plot([x for x, _ in best], [y for _, y in best], ":", color=colour)
    kept.axhline(100 * SHARE, color="firebrick", linewidth=1)
    kept.set_title("Freshness: percent of the bytes that are visible in time")
    cost.set_title("Cost: consumers over the least needed; dotted is the best in hindsight")
    for axes in (kept, cost):
        axes.set_xscale("log")
        axes.set_xlabel("objective, seconds")
        axes.grid(alpha=0.3)
    cost.legend()
    figure.savefig(path, dpi=100)


def _draw_over_time(
    path: Path, plan: ObjectiveStudyPlan, results: Sequence[ObjectiveRunResult]
) -> None:
    figure = Figure(figsize=(13, 2.4 * len(plan.shapes)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(plan.shapes), 1, sharex=True, squeeze=False)[:, 0]
    shades = colormaps["viridis"]
    ends = (plan.objectives_s[0], plan.objectives_s[-1])
    for axes, shape in zip(panels, plan.shapes, strict=True):
        for number, objective_s in enumerate(dict.fromkeys(ends)):
            own = next(
                one
                for one in results
                if one.run.way == objective_s and one.run.shape == shape and not one.run.predicts
            )
            minutes = [n * _DRAWN_EVERY_S / 60 for n in range(len(own.consumers_over_time))]
            axes.step(
                minutes,
                own.consumers_over_time,
                color=shades(0.25 + 0.4 * number),
                label=f"objective {objective_s:g} s",
            )
            if number == 0:
                least = [one / 1e6 for one in own.written_over_time]
                axes.plot(minutes, least, color="grey", linewidth=0.8, label="needed at least")
        axes.set_title(shape, loc="left", fontsize=10)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    panels[0].legend(loc="upper right", fontsize=8)
    panels[-1].set_xlabel("minutes")
    figure.savefig(path, dpi=90)
