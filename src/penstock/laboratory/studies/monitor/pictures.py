"""Draws the study's pictures: speeds over time, each step close up, the filters compared."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.laboratory.studies.monitor.filters_compared import CANDIDATES, Candidate
from penstock.laboratory.studies.monitor.trace import (
    Curve,
    Trace,
    filtered_curve,
    only,
    produced_curve,
    published_curve,
)

_PRODUCED, _PUBLISHED, _RAW = "#8a8f98", "#0b6e4f", "#d98e04"
_COLUMNS = 3
_SHOWN = (
    "window 30 s (as published)",
    "window 5 s",
    "exponential 3 s",
    "step adapting 3 s, 3%, 4 x noise",
)
_COLOURS = ("#b23a48", "#d98e04", "#3d5a80", "#0b6e4f")


def draw_all(traces: Sequence[Trace], directory: Path) -> list[Path]:
    shown = [trace for trace in traces if trace.partition == 0]
    stepping = [trace for trace in shown if trace.step_at_s]
    drawn = [_overview(shown, directory / "speeds-over-time.png")]
    drawn.append(_close_up(stepping, directory / "steps-close-up.png"))
    drawn.append(_filters(stepping[:2], directory / "filters-compared.png"))
    return drawn


def _plot(axes: Axes, curve: Curve, label: str, **style: object) -> None:
    megabytes = [speed / 1e6 for speed in curve.bytes_per_s]
    axes.plot(curve.at_s, megabytes, label=label, **style)  # type: ignore[arg-type]  # kwargs


def _figure(panels: int, title: str, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    columns = min(_COLUMNS, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(4.2 * columns, height * rows + 0.6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots(rows, columns, squeeze=False)
    flat = [one for row in axes for one in row]
    for unused in flat[panels:]:
        unused.set_visible(False)
    return figure, flat[:panels]


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("seconds", fontsize=8)
    axes.set_ylabel("MB/s of log", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, linewidth=0.3)


def _overview(traces: Sequence[Trace], file: Path) -> Path:
    figure, panels = _figure(len(traces), "The speed at the producer and at the monitor")
    for axes, trace in zip(panels, traces, strict=True):
        _plot(axes, produced_curve(trace), "producer, over 1 s", color=_PRODUCED, linewidth=1.8)
        _plot(axes, published_curve(trace), "monitor, published", color=_PUBLISHED, linewidth=1.2)
        _finish(axes, trace.lane + (", one of the partitions" if trace.lane == "many" else ""))
    panels[0].legend(fontsize=7, loc="lower right")
    figure.savefig(file, dpi=110)
    return file


def _close_up(traces: Sequence[Trace], file: Path) -> Path:
    figure, panels = _figure(len(traces), "The same, ten seconds around each step")
    for axes, trace in zip(panels, traces, strict=True):
        at_s = trace.step_at_s or 0.0
        near = (at_s - 2, at_s + 8)
        raw = Curve(
            tuple(one.at_s for one in trace.published if one.raw_bytes_per_s is not None),
            tuple(
                one.raw_bytes_per_s for one in trace.published if one.raw_bytes_per_s is not None
            ),
        )
        produced = only(produced_curve(trace, over_s=0.5), *near)
        _plot(axes, produced, "producer, over 0.5 s", color=_PRODUCED, linewidth=1.8)
        _plot(axes, only(raw, *near), "monitor, raw", color=_RAW, marker="o", markersize=3, lw=0.6)
        published = only(published_curve(trace), *near)
        _plot(axes, published, "monitor, published", color=_PUBLISHED, marker="o", markersize=3)
        axes.axvline(at_s, color="black", linewidth=0.6)
        axes.axvline(at_s + 5, color="black", linewidth=0.6, linestyle=":")
        _finish(axes, trace.lane)
    panels[0].legend(fontsize=7, loc="lower right")
    figure.savefig(file, dpi=110)
    return file


def _filters(traces: Sequence[Trace], file: Path) -> Path:
    figure, panels = _figure(len(traces), "Filters on the same intervals", height=3.4)
    chosen: list[Candidate] = [one for one in CANDIDATES if one.name in _SHOWN]
    for axes, trace in zip(panels, traces, strict=True):
        at_s = trace.step_at_s or 0.0
        near = (at_s - 5, at_s + 35)
        _plot(axes, only(produced_curve(trace), *near), "producer", color=_PRODUCED, linewidth=2)
        for one, colour in zip(chosen, _COLOURS, strict=True):
            curve = filtered_curve(trace, one.speed_filter, window_s=one.window_s)
            _plot(axes, only(curve, *near), one.name, color=colour, linewidth=1.2)
        _finish(axes, trace.lane)
    panels[0].legend(fontsize=7, loc="lower right")
    figure.savefig(file, dpi=110)
    return file
