"""Draws a campaign over time: records, commits, consumers, and the faults as marks."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from penstock.laboratory.campaign.faults import Harm, Injected, Part
from penstock.laboratory.campaign.figures import FENCED, given_up_unharmed, outages_of
from penstock.laboratory.campaign.observed import CampaignRun

_MARKS = {
    Harm.KILL: ("x", "crimson"),
    Harm.TERMINATE: ("v", "darkorange"),
    Harm.PAUSE: ("|", "tab:blue"),
    Harm.MAKE: ("^", "tab:green"),
    Harm.GROW: ("+", "tab:green"),
    Harm.DELETE: ("x", "tab:brown"),
}


def draw(run: CampaignRun, title: str, file: Path) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 -- after the backend is chosen

    figure, (records, commits, consumers, faults) = plt.subplots(
        4, 1, figsize=(12, 10), sharex=True, height_ratios=[3, 2, 2, 3]
    )
    samples = run.watched.samples
    times = [one.at_s for one in samples]
    records.plot(
        times, [one.told_committed for one in samples], color="black", label="producers were told"
    )
    records.step(*_carried(run), where="post", color="tab:blue", label="offsets in the lake")
    records.set_ylabel("committed")
    records.set_title(title)
    records.legend(loc="upper left", fontsize=8)
    each_second = Counter(int(at_s // 1) for at_s, _ in run.commits)
    last_s = max([run.length_s, *times])
    seconds = range(int(last_s) + 1)
    commits.bar(seconds, [each_second[one] for one in seconds], width=1.0, align="edge")
    commits.set_ylabel("partitions\ncommitted per s")
    consumers.step(times, [one.consumers for one in samples], where="post", label="consumers")
    needed = [float("nan") if one.needed is None else one.needed for one in samples]
    consumers.step(times, needed, where="post", linestyle="--", label="needed")
    _fences(consumers, run)
    consumers.set_ylim(bottom=0)
    consumers.set_ylabel("consumers")
    consumers.legend(loc="upper left", fontsize=8)
    _faults(faults, run.injected)
    for axes in (records, commits, consumers, faults):
        for since_s, until_s in outages_of(run.injected):
            axes.axvspan(since_s, until_s, color="grey", alpha=0.25, linewidth=0)
        axes.axvline(run.length_s, color="black", linewidth=1, linestyle=":")
        axes.set_xlim(0, last_s)
    faults.set_xlabel("seconds; grey: broker or Spark server down; dotted: the load ends")
    figure.tight_layout()
    figure.savefig(file, dpi=100)
    plt.close(figure)


def _carried(run: CampaignRun) -> tuple[list[float], list[int]]:
    """All offsets in the ledger together, from the begin of the campaign on."""
    offsets: dict[tuple[str, str], int] = {}
    times, totals = [], []
    for at_s, one in run.commits:
        offsets[one.topic_id, one.partition] = one.offset
        times.append(max(0.0, at_s))
        totals.append(sum(offsets.values()))
    return times, totals


def _fences(axes: Any, run: CampaignRun) -> None:
    decisions = [one for one in run.watched.decisions if one.at_s >= 0]
    unharmed = given_up_unharmed(decisions, run.injected)
    for one in decisions:
        if one.code == FENCED:
            colour = "crimson" if one in unharmed else "grey"
            axes.plot([one.at_s], [0.3], marker="v", color=colour)
    axes.plot([], [], "v", color="crimson", label="told to end, unharmed")
    axes.plot([], [], "v", color="grey", label="told to end, harmed")


def _faults(axes: Any, injected: Sequence[Injected]) -> None:
    rows = list(Part)
    for one in injected:
        row = rows.index(one.fault.part)
        marker, colour = _MARKS[one.fault.harm]
        axes.plot([one.at_s], [row], marker=marker, color=colour, markersize=8)
        if one.over_s > one.at_s:
            axes.plot([one.at_s, one.over_s], [row, row], color=colour, linewidth=3)
    for harm, (marker, colour) in _MARKS.items():
        axes.plot([], [], marker=marker, color=colour, linestyle="", label=harm.value)
    axes.set_yticks(range(len(rows)), [part.value for part in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
