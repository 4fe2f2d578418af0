"""Writes the study's report and pictures."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from penstock.laboratory.studies.consumer.drain import Drained
from penstock.laboratory.studies.consumer.questions import Case

_BAR = "#0b6e4f"


@dataclass(frozen=True, slots=True)
class StudyFinding:
    case: Case
    runs: tuple[Drained, ...]

    @property
    def decoded_mb_per_s(self) -> float:
        return statistics.median(run.decoded_mb_per_s for run in self.runs)

    @property
    def spread(self) -> float:
        """The fastest run over the slowest."""
        speeds = [run.decoded_mb_per_s for run in self.runs]
        return max(speeds) / min(speeds)


def questions_of(findings: Sequence[StudyFinding]) -> Mapping[str, list[StudyFinding]]:
    by_question: dict[str, list[StudyFinding]] = {}
    for one in findings:
        by_question.setdefault(one.case.question, []).append(one)
    return by_question


def page_text(findings: Sequence[StudyFinding], *, runs: int, cores: int, load: float) -> str:
    """The report: one table per question, with speeds relative to its first row."""
    lines = [
        "# How fast is one consumer?",
        "",
        "Written by `penstock study consumer`; do not edit.",
        "",
        "One consumer drains topics that were filled before, into a lake of its own: embedded",
        f"broker, real Spark, everything on one machine with {cores} cores. Each row is the median",
        f"of {runs} run(s). The machine may be shared with other work (load average at the end:",
        f"{load:.0f}, on {cores} cores), so compare rows, not machines, and those only roughly:",
        "*ratio* is to the first row of its table, *spread* is the fastest run over the slowest.",
        "Speed is decoded bytes (keys and values) from the end of the first batch to that of the",
        "last; *log* is the same in bytes of the broker's log, the monitor's unit; *reported* is",
        "the capacity that the consumer itself reported in that unit, where it knew one.",
        "",
        f"Every case drains {_size_mb(findings)} MB. Where that is little, the fixed cost of a",
        "batch and the warming up of Spark weigh more than they would in a long backlog.",
        "",
    ]
    for question, rows in questions_of(findings).items():
        first = rows[0].decoded_mb_per_s
        lines += [
            f"## {question[0].upper()}{question[1:]}",
            "",
            f"![{question}](consumer/{_file_name(question)})",
            "",
            f"| {question} | MB/s | ratio | spread | records/s | log MB/s | reported | commit |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for row in rows:
            middle = sorted(row.runs, key=lambda run: run.decoded_mb_per_s)[len(row.runs) // 2]
            reported = middle.reported_capacity_mb_per_s
            lines.append(
                f"| {row.case.label} | {row.decoded_mb_per_s:.1f} "
                f"| {row.decoded_mb_per_s / first:.2f} | {row.spread:.2f} "
                f"| {middle.records_per_s:,.0f} | {middle.log_mb_per_s:.1f} "
                f"| {'' if reported is None else f'{reported:.1f}'} | {middle.commit_ms:.0f} ms |"
            )
        lines.append("")
    return "\n".join(lines)


def _size_mb(findings: Sequence[StudyFinding]) -> str:
    sizes = sorted({one.case.filling.total_bytes // 10**6 for one in findings})
    return " or ".join(str(size) for size in sizes)


def draw(findings: Sequence[StudyFinding], directory: Path) -> list[Path]:
    """Draw one picture per question."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    for question, rows in questions_of(findings).items():
        figure = Figure(figsize=(6, 0.5 * len(rows) + 1.2), layout="constrained")
        axes = figure.subplots()
        labels = [row.case.label for row in rows]
        axes.barh(labels, [row.decoded_mb_per_s for row in rows], color=_BAR)
        axes.margins(x=0.12)  # space for the numbers beside the bars
        axes.invert_yaxis()
        axes.set_xlabel("decoded MB/s of one consumer")
        axes.set_title(question, fontsize=10)
        for place, row in enumerate(rows):
            axes.text(row.decoded_mb_per_s, place, f" {row.decoded_mb_per_s:.0f}", va="center")
        file = directory / _file_name(question)
        figure.savefig(file, dpi=110)
        drawn.append(file)
    return drawn


def _file_name(question: str) -> str:
    return question.replace(",", "").replace(" ", "-").lower() + ".png"
