"""Writes the report of the packing study, with its picture and its numbers."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.laboratory.packing_replay.generate import UNIFORM_START
from penstock.laboratory.studies.packing.exact import Gap
from penstock.laboratory.studies.packing.faithfulness import Closeness
from penstock.laboratory.studies.packing.published import (
    CBS_OF_MWF_MAX,
    R_OF_BFD_MAX,
    R_OF_MWF_MAX,
)
from penstock.laboratory.studies.packing.study import (
    OUR_NAMES,
    PackingStudyPlan,
    Score,
    not_dominated,
)
from penstock.laboratory.studies.played_runs import lines_about_playing
from penstock.packing import PUBLISHED

Found = Mapping[tuple[str, str, int], Score]
_NAMES = tuple(algorithm.name for algorithm in PUBLISHED)


def write_page(
    folder: Path,
    plan: PackingStudyPlan,
    found: Found,
    close: Mapping[tuple[str, int], Closeness],
    gap: Gap | None,
    made_by: str,
) -> Path:
    """Write packing.md, packing.png and packing.csv into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_numbers(folder / "packing.csv", found)
    _draw(folder / "packing.png", plan, found)
    page = folder / "packing.md"
    page.write_text("\n".join(_lines(plan, found, close, gap, made_by)) + "\n", encoding="utf-8")
    return page


def _lines(
    plan: PackingStudyPlan,
    found: Found,
    close: Mapping[tuple[str, int], Closeness],
    gap: Gap | None,
    made_by: str,
) -> Iterable[str]:
    deltas = [delta for delta in plan.deltas if delta in R_OF_MWF_MAX]
    yield "# Study: packing, the published twelve and CHAIN"
    yield ""
    yield f"Made by {made_by}. Do not edit: run it again."
    yield ""
    yield (
        f"{plan.partitions} partitions, {plan.measurements} measurements, starts "
        f"{', '.join(plan.starts)}; seeds {', '.join(map(str, plan.seeds))} for the uniform start"
        f"{_other_seeds(plan)}. While CHAIN was tuned "
        "only seeds 9001 to 9003 were used. Every score is the mean over the seeds; CBS is "
        "measured against the fewest consumers of all algorithms on this page. All numbers are in "
        "[packing.csv](packing.csv)."
    )
    yield ""
    yield "![The two scores of every algorithm, by delta](packing.png)"
    yield ""
    yield "## Uniform start, CBS / R"
    yield ""
    yield from _score_table("uniform", deltas, found)
    yield ""
    yield from _targets(deltas, found)
    yield ""
    yield from _faithful(plan, deltas, close)
    yield ""
    yield from _other_starts(plan, found)
    if gap is not None:
        yield ""
        yield from _exact(gap)
    yield ""
    yield from lines_about_playing([_export_command(plan, deltas[0])])


def _export_command(plan: PackingStudyPlan, delta: int) -> str:
    return (
        f"penstock simulate --generate walk --delta {delta} --partitions {plan.partitions} "
        f"--measurements {plan.measurements} --seed {plan.seeds[0]} "
        "--algorithm CHAIN --algorithm MWF --export walk.html"
    )


def _other_seeds(plan: PackingStudyPlan) -> str:
    if set(plan.starts) <= {UNIFORM_START}:
        return ""
    return f", {', '.join(map(str, plan.seeds_of_other_starts))} for the others"


def _score_table(start: str, deltas: Sequence[int], found: Found) -> Iterable[str]:
    yield f"| algorithm | {' | '.join(f'delta {delta}' for delta in deltas)} | ms a run |"
    yield "|---|" + "---|" * (len(deltas) + 1)
    for name in (*OUR_NAMES, *_NAMES):
        cells = [found[start, name, delta] for delta in deltas]
        shown = " | ".join(f"{cell.cbs:.4f} / {cell.r:.2f}" for cell in cells)
        slowest = max(cell.time_per_run_ms for cell in cells)
        yield f"| {name} | {shown} | {slowest:.1f} |"


def _targets(deltas: Sequence[int], found: Found) -> Iterable[str]:
    yield "## Against the targets"
    yield ""
    yield "| delta | CBS, share of MWF's | R, share of MWF's | consumers of CHAIN@0 / BFD | R of CHAIN@0, share of BFD's | published points not dominated |"  # noqa: E501 -- one row of a table
    yield "|---|---|---|---|---|---|"
    for delta in deltas:
        ours, mwf = found["uniform", "CHAIN", delta], found["uniform", "MWF", delta]
        fewest, bfd = found["uniform", "CHAIN@0", delta], found["uniform", "BFD", delta]
        left = ", ".join(not_dominated(found, "uniform", delta)) or "none"
        yield (
            f"| {delta} | {ours.cbs / mwf.cbs:.3f} (at most {CBS_OF_MWF_MAX}) "
            f"| {ours.r / mwf.r:.3f} (at most {R_OF_MWF_MAX[delta]}) "
            f"| {fewest.consumers:.2f} / {bfd.consumers:.2f} "
            f"| {fewest.r / bfd.r:.3f} (at most {R_OF_BFD_MAX[delta]}) | {left} |"
        )


def _faithful(
    plan: PackingStudyPlan, deltas: Sequence[int], close: Mapping[tuple[str, int], Closeness]
) -> Iterable[str]:
    seeds = sorted({*plan.seeds, *plan.seeds_of_published})
    yield "## How close our twelve come to the published table"
    yield ""
    yield (
        "Difference in CBS, and in R in percent; in brackets how much one stream differs from "
        "another (standard deviation). The target is 0.01 and 5 %. CBS is among the twelve, seeds "
        f"{', '.join(map(str, seeds))}."
    )
    yield ""
    yield from _differences(deltas, close, is_like_with_like=False)
    yield ""
    yield (
        "The published table was made on one stream per delta, and a stream that is harder for one "
        "algorithm is harder for all. Like with like: what ours score on a stream on which the "
        "other algorithms score as published (a line fitted over our streams; see "
        "`laboratory/studies/packing/faithfulness.py`)."
    )
    yield ""
    yield from _differences(deltas, close, is_like_with_like=True)


def _differences(
    deltas: Sequence[int],
    close: Mapping[tuple[str, int], Closeness],
    *,
    is_like_with_like: bool,
) -> Iterable[str]:
    yield f"| algorithm | {' | '.join(f'delta {delta}' for delta in deltas)} |"
    yield "|---|" + "---|" * len(deltas)
    for name in _NAMES:
        cells = []
        for delta in deltas:
            cbs, r = close[name, delta].cbs, close[name, delta].r
            if not is_like_with_like:
                cells.append(
                    f"{cbs.mean - cbs.published:+.4f} ({cbs.spread:.4f}) / "
                    f"{_percent(r.mean, r.published)} ({100 * r.spread / r.published:.1f} %)"
                )
            elif cbs.like_with_like is None or r.like_with_like is None:
                cells.append("too few streams")
            else:
                cells.append(
                    f"{cbs.like_with_like - cbs.published:+.4f} / "
                    f"{_percent(r.like_with_like, r.published)}"
                )
        yield f"| {name} | {' | '.join(cells)} |"


def _percent(here: float, there: float) -> str:
    return f"{100 * (here / there - 1):+.1f} %"


def _other_starts(plan: PackingStudyPlan, found: Found) -> Iterable[str]:
    yield "## The other starts, and delta 0: consumers (mean) / R"
    names = ("CHAIN@0", "CHAIN", "CHAIN@1", "BFD", "MWF", "MBF")
    for start in plan.starts:
        deltas = [d for d in plan.deltas if start != "uniform" or d == 0]
        if not deltas:
            continue
        yield ""
        yield f"Start {start}:"
        yield ""
        yield f"| algorithm | {' | '.join(f'delta {delta}' for delta in deltas)} |"
        yield "|---|" + "---|" * len(deltas)
        for name in names:
            cells = [found[start, name, delta] for delta in deltas]
            yield f"| {name} | {' | '.join(f'{c.consumers:.1f} / {c.r:.2f}' for c in cells)} |"


def _exact(gap: Gap) -> Iterable[str]:
    yield "## Against the exact optimum"
    yield ""
    yield (
        f"{gap.cases} cases of 8 to 24 partitions (seeds {gap.seeds}), each a step of delta "
        f"{gap.delta} from the packing before, solved by CP-SAT; {gap.proved} were proved optimal. "
        "Consumers: CHAIN@0 against the fewest possible. R: against the least load that must move "
        "to use no more consumers than CHAIN did."
    )
    yield ""
    yield "| knob | consumers above the optimum | R above the optimum at equal consumers |"
    yield "|---|---|---|"
    for knob, consumers, moved in gap.by_knob:
        yield f"| {knob:g} | {100 * consumers:.2f} % | {100 * moved:.1f} % |"


def _write_numbers(path: Path, found: Found) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["start", "algorithm", "delta", "cbs", "r", "consumers", "ms_a_run"])
        for (start, name, delta), score in sorted(found.items()):
            numbers = (score.cbs, score.r, score.consumers, score.time_per_run_ms)
            writer.writerow([start, name, delta, *(f"{number:.5f}" for number in numbers)])


def _draw(path: Path, plan: PackingStudyPlan, found: Found) -> None:
    deltas = [delta for delta in plan.deltas if delta in R_OF_MWF_MAX]
    figure = Figure(figsize=(5 * min(3, len(deltas)), 9.5), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, min(3, len(deltas)), squeeze=False).flatten()
    for axes, delta in zip(grid, deltas, strict=False):
        ours = [found["uniform", name, delta] for name in OUR_NAMES]
        axes.plot([s.cbs for s in ours], [s.r for s in ours], "D-", color="tab:blue", label="CHAIN")
        theirs = [found["uniform", name, delta] for name in _NAMES]
        axes.scatter([s.cbs for s in theirs], [s.r for s in theirs], color="tab:red", zorder=3)
        for name, score in zip(_NAMES, theirs, strict=True):
            if name not in {"FFD", "WFD", "MBFP"}:
                axes.annotate(
                    name,
                    (score.cbs, score.r),
                    textcoords="offset points",
                    xytext=(6, 5),
                    fontsize=9,
                )
        axes.set_title(f"delta {delta}")
        axes.set_xlabel("CBS (fewer consumers to the left)")
        axes.set_ylabel("R (fewer moves below)")
        axes.set_ylim(0, 36)
        axes.margins(x=0.09)
        axes.grid(alpha=0.3)
    for axes in grid[len(deltas) :]:
        axes.axis("off")
        axes.text(
            0,
            0.9,
            "Blue: CHAIN along its knob,\nfrom 0 (left) to 1 (right).\n"
            "Red: the published twelve.\nFFD, WFD and MBFP lie beside BFD.",
            va="top",
            fontsize=12,
        )
    figure.savefig(path, dpi=100)
