"""Writes the study's tables: scores per lane, filters compared, every reading as CSV."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.laboratory.studies.monitor.filters_compared import CandidateScore, compare
from penstock.laboratory.studies.monitor.scores import (
    FollowScore,
    PlateauScore,
    follow_score,
    plateau_score,
)
from penstock.laboratory.studies.monitor.trace import Trace, published_curve

TARGETS = {"settling_s": 5.0, "plateau_error": 0.01, "spread": 0.03}


@dataclass(frozen=True, slots=True)
class LaneScore:
    """A lane's score; with several partitions the worst of each number."""

    lane: str
    partitions: int
    plateau: PlateauScore | None
    follow: FollowScore | None

    @property
    def meets_targets(self) -> bool | None:
        """None if the lane has no plateau or its producer was disturbed."""
        if self.plateau is None or self.plateau.is_disturbed:
            return None
        settling_s = self.plateau.settling_s
        return (
            settling_s is not None
            and settling_s <= TARGETS["settling_s"]
            and abs(self.plateau.plateau_error) <= TARGETS["plateau_error"]
            and self.plateau.spread <= TARGETS["spread"]
        )


def lane_scores(traces: Sequence[Trace]) -> list[LaneScore]:
    lanes: dict[str, list[Trace]] = {}
    for trace in traces:
        lanes.setdefault(trace.lane, []).append(trace)
    return [
        LaneScore(
            lane=lane,
            partitions=len(group),
            plateau=_worst([plateau_score(one, published_curve(one)) for one in group])
            if group[0].step_at_s is not None
            else None,
            follow=None
            if group[0].step_at_s is not None
            else follow_score(group[0], published_curve(group[0])),
        )
        for lane, group in lanes.items()
    ]


def _worst(scores: Sequence[PlateauScore]) -> PlateauScore:
    """The worst of the partitions whose producer was constant, or of all if none was."""
    judged = [one for one in scores if not one.is_disturbed] or list(scores)
    settled = [one.settling_s for one in judged]
    return PlateauScore(
        settling_s=None if None in settled else max(one for one in settled if one is not None),
        plateau_error=max((one.plateau_error for one in judged), key=abs),
        spread=max(one.spread for one in judged),
        produced_spread=max(one.produced_spread for one in judged),
        readings=sum(one.readings for one in judged),
    )


def write_csv(traces: Sequence[Trace], file: Path) -> None:
    """Write every reading beside the produced speed of the second before."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        names = ("run", "lane", "partition", "at_s", "produced", "raw", "published")
        writer.writerow(names)
        for trace in traces:
            for one in trace.published:
                if not 1.0 <= one.at_s <= trace.seconds:
                    continue
                produced = trace.produced_bytes_per_s(one.at_s - 1, one.at_s)
                values = (produced, one.raw_bytes_per_s, one.bytes_per_s)
                texts = ["" if value is None else f"{value:.0f}" for value in values]
                where = (trace.run, trace.lane, trace.partition, f"{one.at_s:.2f}")
                writer.writerow([*where, *texts])


def scores_markdown(scores: Sequence[LaneScore]) -> str:
    lines = [
        (
            "| lane | settles after | plateau error | spread | the producer's own, over 5 s |"
            " delay | error while changing |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    for score in scores:
        name = f"{score.lane} ({score.partitions})" if score.partitions > 1 else score.lane
        if score.plateau is not None:
            plateau = score.plateau
            settling = "never" if plateau.settling_s is None else f"{plateau.settling_s:.1f} s"
            if plateau.settling_s == 0:
                settling = "(no step)"
            lines.append(
                f"| {name} | {settling} | {plateau.plateau_error:+.2%} | {plateau.spread:.2%} |"
                f" {plateau.produced_spread:.2%}{' (disturbed)' if plateau.is_disturbed else ''}"
                " | | |"
            )
        if score.follow is not None:
            follow = score.follow
            lines.append(f"| {name} | | | | | {follow.delay_s:.1f} s | {follow.error:.1%} |")
    return "\n".join(lines) + "\n"


def filters_markdown(scores: Sequence[CandidateScore]) -> str:
    lines = [
        (
            "| filter | settles after (worst) | plateau error (worst) | spread (worst) |"
            " delay (mean) | error while changing (mean) |"
        ),
        "|---|---|---|---|---|---|",
    ]
    for one in scores:
        settling = "not within the run" if one.settling_s is None else f"{one.settling_s:.1f} s"
        lines.append(
            f"| {one.name} | {settling} | {one.plateau_error:+.2%} | {one.spread:.2%} |"
            f" {one.delay_s:.1f} s | {one.follow_error:.1%} |"
        )
    return "\n".join(lines) + "\n"


def filter_scores(traces: Sequence[Trace]) -> list[CandidateScore]:
    """Compare filters on plateaus with a constant producer (or all), and on changing lanes."""
    moving = [trace for trace in traces if trace.step_at_s is None]
    stepping = [trace for trace in traces if trace.step_at_s is not None]
    calm = [
        trace for trace in stepping if not plateau_score(trace, published_curve(trace)).is_disturbed
    ]
    return compare([*moving, *(calm or stepping)])
