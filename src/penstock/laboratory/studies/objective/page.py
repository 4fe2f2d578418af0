"""Writes the report of the study of the objective, with its pictures and its numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.laboratory.studies.objective.numbers import write_numbers
from penstock.laboratory.studies.objective.simulated_group import BATCH_FIXED_S, Surroundings
from penstock.laboratory.studies.objective.study import (
    EXTRA_MAX,
    RULES_CHOSEN_ON,
    SHARE,
    ObjectiveRunResult,
    ObjectiveStudyPlan,
    Verdict,
    verdicts,
)
from penstock.packing.objective import SHARE_DEFAULT

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
    write_numbers(folder / "objective.csv", plan, results, date)
    _draw_front(folder / "objective-front.png", plan, found)
    _draw_over_time(folder / "objective-over-time.png", plan, results)
    page = folder / "objective.md"
    made = f"Made by `{command}` on {date}{_about_dates(results)}. Do not edit: run it again."
    page.write_text("\n".join(_lines(plan, found, made)) + "\n", encoding="utf-8")
    return page


def _about_dates(results: Sequence[ObjectiveRunResult]) -> str:
    """How many runs were taken from earlier tables of numbers, by their dates."""
    earlier = Counter(one.date for one in results if one.date)
    parts = [f"{number} are of {date}" for date, number in sorted(earlier.items())]
    return f" (of {len(results)} runs {', '.join(parts)})" if parts else ""


def _lines(plan: ObjectiveStudyPlan, found: Sequence[Verdict], made: str) -> Iterable[str]:
    yield "# Study: is the objective kept, and what does it cost?"
    yield ""
    yield made
    yield ""
    yield from _what_was_simulated(plan)
    yield "## The answer"
    yield ""
    for seed in plan.seeds:
        yield from _answer(seed, [one for one in found if one.seed == seed])
    yield ""
    yield f"Lines are of seed {plan.seeds[0]}; the line of what is kept is the stricter measure."
    yield ""
    yield "![Consumers and freshness](objective-front.png)"
    for seed in plan.seeds:
        yield ""
        yield f"### Seed {seed}"
        yield ""
        yield from _table([one for one in found if one.seed == seed])
    yield ""
    yield "## Where it misses"
    yield ""
    yield from _misses(found)
    yield ""
    yield from _misses_by_bytes(found)
    yield ""
    yield "## Over time"
    yield ""
    yield (
        "Consumers that are paid for, against the least that could carry the load; seed "
        f"{plan.seeds[0]}."
    )
    yield ""
    yield "![Over time](objective-over-time.png)"
    yield ""
    yield "## Does a prediction earn its place?"
    yield ""
    yield (
        "The same objectives, with a predictor that finds the period of the load and plans for the "
        "highest speed of each partition one period ago, half a minute ahead. It wins where it "
        "keeps the objective with fewer consumers, or keeps one that the trend alone does not. "
        "*Kept* is by bytes alone here."
    )
    yield ""
    yield from _predictions(found)
    yield ""
    yield "All numbers are in [objective.csv](objective.csv)."


def _what_was_simulated(plan: ObjectiveStudyPlan) -> Iterable[str]:
    """What was simulated, and what the columns of the table mean."""
    surroundings = Surroundings()
    yield (
        f"{plan.partitions} partitions, a measurement every second for {plan.seconds / 60:g} "
        f"minutes, of which the first {plan.counted_from_s / 60:g} are for learning and do not "
        f"count; seeds {', '.join(map(str, plan.seeds))}, which no test uses. {_about_seeds(plan)}"
        "The live trigger, "
        "packer, speed memory and objective lead a simulated group: a consumer starts in "
        f"{surroundings.start_s} s, a move stops a partition for {surroundings.move_s:g} s and "
        f"half a batch, a batch has {BATCH_FIXED_S:g} s of fixed cost, so short batches carry "
        "less. The daily wave "
        "is a day squeezed into an hour: it rises 24 times as fast as a real one."
    )
    yield ""
    yield (
        f"*Bytes* is the share of all bytes that were visible within the objective. *Time* is the "
        f"share of the seconds that were fresh: {SHARE_DEFAULT:.0%} of the bytes written in the "
        "second were visible within it. "
        f"*Kept* means at least {SHARE:.0%} of both, for the group and for hindsight. "
        "*Without late* is stricter than any objective asks for, and judges nothing: the share of "
        "the seconds in which the oldest record that was not yet visible, in any of the "
        f"{plan.partitions} partitions, was within it. Its age is taken at the end of its batch, "
        "where it is highest. "
        "*Consumers* is what was paid for on average, spares and starts included. "
        f"*Hindsight* is the cheapest of {len(plan.grid())} settings (how full, how long peaks are "
        "kept, spares, batch time) that keeps the objective on that very load: nobody can know it "
        f"before. Where none of them does, {len(plan.careful_grid())} more careful ones are tried. "
        f"Wanted is at most {EXTRA_MAX:.0%} more than that. *Starts* and *ends* are those of "
        f"consumers in the {(plan.seconds - plan.counted_from_s) / 60:g} minutes that count, in "
        "brackets those of hindsight."
    )
    yield ""


def _about_seeds(plan: ObjectiveStudyPlan) -> str:
    if RULES_CHOSEN_ON not in plan.seeds:
        return f"The rules were chosen on loads of seed {RULES_CHOSEN_ON}, and not on these. "
    others = [str(one) for one in plan.seeds if one != RULES_CHOSEN_ON]
    chosen = f"The rules were chosen on loads of seed {RULES_CHOSEN_ON}"
    return f"{chosen}, and not on those of {', '.join(others)}. " if others else f"{chosen}. "


def _answer(seed: int, found: Sequence[Verdict]) -> Iterable[str]:
    """One item of a list: how many of the cases of a seed are kept, and at what price."""
    number = len(found)
    of_bytes = sum(one.share >= SHARE for one in found)
    of_time = sum(one.time >= SHARE for one in found)
    without_late = sum((one.time_without_late or 0) >= SHARE for one in found)
    compared = [one for one in found if one.highest_kept is not None]
    out_of_reach = sum(not one.can_be_kept for one in found)
    yield (
        f"- Seed {seed}: freshness is kept in {sum(one.is_kept for one in found)} of {number} "
        f"cases ({of_bytes} by bytes, {of_time} by time). In {without_late} at least {SHARE:.0%} "
        "of the seconds are without any late record."
        + (
            f" In {sum(one.is_met for one in compared)} of the {len(compared)} that are compared "
            f"with hindsight the group also costs at most {EXTRA_MAX:.0%} more."
            if compared
            else " None is compared with hindsight."
        )
        + (f" {out_of_reach} cannot be kept by any setting tried." if out_of_reach else "")
    )


def _table(found: Sequence[Verdict]) -> Iterable[str]:
    yield (
        "| load | objective | bytes | time | without late | consumers | needed at least "
        "| hindsight | more | starts | ends | moves |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for one in found:
        best = "cannot be kept by any setting tried"
        if one.highest_kept is None:
            best = "not tried"
        starts, ends = str(one.starts), str(one.ends)
        if one.best is not None:
            best = f"{one.best.consumers:.2f}"
            starts, ends = f"{starts} ({one.best.starts})", f"{ends} ({one.best.ends})"
        extra = "" if one.extra is None else f"{one.extra:+.0%}"
        if one.extra is not None and one.extra > EXTRA_MAX:
            extra = f"**{extra}**"
        without_late = "" if one.time_without_late is None else f"{one.time_without_late:.2%}"
        yield (
            f"| {one.shape} | {one.objective_s:g} s | {_kept(one.share)} | {_kept(one.time)} | "
            f"{without_late} | {one.consumers:.2f} | {one.bound:.2f} | {best} | {extra} | "
            f"{starts} | {ends} | {one.moves} |"
        )


def _kept(share: float) -> str:
    """What is below the wanted share is bold."""
    return f"{share:.2%}" if share >= SHARE else f"**{share:.2%}**"


def _misses(found: Sequence[Verdict]) -> Iterable[str]:
    late = [one for one in found if not one.is_kept]
    dear = [one for one in found if one.is_kept and not one.is_met]
    if not late and not dear:
        yield "Nowhere."
    for one in late:
        if one.highest_kept is None:
            hindsight = "hindsight was not tried"
        elif one.best is None:
            most = f"{one.highest_kept:.2%}"
            hindsight = f"it cannot be kept by any setting tried, the best has {most}"
        else:
            hindsight = (
                f"hindsight keeps it with {one.best.consumers:.2f} consumers, the group has "
                f"{one.consumers:.2f}"
            )
        yield (
            f"- seed {one.seed}, {one.shape}, {one.objective_s:g} s: {one.share:.2%} of the bytes "
            f"and {one.time:.2%} of the time instead of {SHARE:.0%}; {hindsight}."
        )
    for one in dear:
        yield (
            f"- seed {one.seed}, {one.shape}, {one.objective_s:g} s: kept, with {one.extra:+.1%} "
            f"consumers instead of at most {EXTRA_MAX:+.0%}."
        )


def _misses_by_bytes(found: Sequence[Verdict]) -> Iterable[str]:
    """A looser rule lets cheaper settings in, so the group may cost too much by it alone."""
    yield "Where the group and hindsight are judged by bytes alone:"
    yield ""
    late = [one for one in found if one.share < SHARE]
    dear = [one for one in found if one.share >= SHARE and (one.extra_by_bytes or 0) > EXTRA_MAX]
    for one in late:
        yield f"- seed {one.seed}, {one.shape}, {one.objective_s:g} s: {one.share:.2%}."
    for one in dear:
        yield (
            f"- seed {one.seed}, {one.shape}, {one.objective_s:g} s: kept, with "
            f"{one.extra_by_bytes:+.1%} consumers instead of at most {EXTRA_MAX:+.0%}."
        )
    if not late and not dear:
        yield "- nowhere."


def _predictions(found: Sequence[Verdict]) -> Iterable[str]:
    yield "| seed | load | objective | kept | with prediction | consumers | with prediction |"
    yield "|---|---|---|---|---|---|---|"
    for one in found:
        if one.ahead is not None:
            yield (
                f"| {one.seed} | {one.shape} | {one.objective_s:g} s | {one.share:.2%} | "
                f"{one.predicted_share:.2%} | {one.consumers:.2f} | {one.ahead.consumers:.2f} |"
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
        kept.plot(at, [100 * one.kept for one in own], "o-", color=colour, label=shape)
        cost.plot(at, [one.consumers / one.bound for one in own], "o-", color=colour, label=shape)
        best = [(o.objective_s, o.best.consumers / o.bound) for o in own if o.best is not None]
        cost.plot([x for x, _ in best], [y for _, y in best], ":", color=colour)
    kept.axhline(100 * SHARE, color="firebrick", linewidth=1)
    kept.set_title("Freshness: percent in time, the lower of bytes and seconds")
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
                if (one.run.way, one.run.shape, one.run.seed, one.run.predicts)
                == (objective_s, shape, plan.seeds[0], False)
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
