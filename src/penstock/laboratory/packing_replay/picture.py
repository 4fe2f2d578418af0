"""Draws a simulation as a PNG or as one self-contained HTML file.

Three views: consumers over time against the lower bound, the two scores against each other, and the
packing itself at the last measurement as stacked bars.
"""

import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.errors import UsageError
from penstock.model import Assignment, TopicPartition

FORMATS = (".png", ".html")
_BARS_MAX = 150
_CONSUMER_NUMBERS_SHOWN_MAX = 30


@dataclass(frozen=True, slots=True)
class Picture:
    """The data to draw; `packing_of` names the algorithm whose last packing is shown."""

    rows: Sequence[Mapping[str, Any]]
    consumers: Mapping[str, Sequence[int]]
    lower_bounds: Sequence[int]
    packing_of: str
    assignment: Assignment
    write_speed_bytes_per_s: Mapping[TopicPartition, float]
    capacity_bytes_per_s: float


def check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--plot makes {' or '.join(FORMATS)}, got {path.name!r}")


def draw(picture: Picture, path: Path) -> None:
    """Write the picture in the format of the file's suffix."""
    check_format(path)
    figure = _figure(picture)
    if path.suffix.lower() == ".png":
        figure.savefig(path, dpi=120)
        return
    drawing = io.StringIO()
    figure.savefig(drawing, format="svg")
    path.write_text(_page(picture, drawing.getvalue()), encoding="utf-8")


def _figure(picture: Picture) -> Figure:
    figure = Figure(figsize=(13, 13), layout="constrained")
    FigureCanvasAgg(figure)
    over_time, scores, packing = figure.subplots(3, 1, height_ratios=(4, 4, 3))
    _draw_consumers(over_time, picture)
    _draw_scores(scores, picture)
    _draw_packing(packing, picture)
    return figure


def _colours(names: Sequence[str]) -> dict[str, Any]:
    palette = colormaps["tab20"]
    return {name: palette(number % 20) for number, name in enumerate(names)}


def _draw_consumers(axes: Axes, picture: Picture) -> None:
    colours = _colours(list(picture.consumers))
    for name, counts in picture.consumers.items():
        axes.plot(counts, label=name, color=colours[name], linewidth=1.2)
    axes.plot(picture.lower_bounds, label="lower bound", color="black", linewidth=1.2, ls="--")
    axes.set_title("Consumers over time")
    axes.set_xlabel("measurement")
    axes.set_ylabel("consumers")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=9)
    axes.grid(alpha=0.3)


def _draw_scores(axes: Axes, picture: Picture) -> None:
    colours = _colours([row["algorithm"] for row in picture.rows])
    for row in picture.rows:
        ours = row["algorithm"].startswith("CHAIN")
        axes.scatter(
            row["cbs"],
            row["r"],
            color=colours[row["algorithm"]],
            marker="D" if ours else "o",
            s=60,
            label=row["algorithm"],
            zorder=3,
        )
    front = sorted((r["cbs"], r["r"]) for r in picture.rows if r["algorithm"].startswith("CHAIN"))
    if len(front) > 1:
        axes.plot([x for x, _ in front], [y for _, y in front], color="grey", linewidth=1)
    axes.set_title("Fewer consumers against fewer moves: left and low is better")
    axes.set_xlabel("CBS: consumers above the fewest, as a share")
    axes.set_ylabel("R: load moved per measurement, in capacities")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=9)
    axes.grid(alpha=0.3)


def _draw_packing(axes: Axes, picture: Picture) -> None:
    speeds, capacity = picture.write_speed_bytes_per_s, picture.capacity_bytes_per_s
    held = [c for c in picture.assignment if picture.assignment[c]]
    shown = held[:_BARS_MAX]
    shades = colormaps["viridis"]
    for place, consumer in enumerate(shown):
        base = 0.0
        partitions = sorted(picture.assignment[consumer], key=lambda p: (-speeds[p], p))
        for number, partition in enumerate(partitions):
            height = 100 * speeds[partition] / capacity
            colour = shades(0.15 + 0.7 * (number % 5) / 4)
            axes.bar(place, height, bottom=base, color=colour, edgecolor="white", linewidth=0.4)
            base += height
    axes.axhline(100, color="firebrick", linewidth=1)
    part = "" if len(shown) == len(held) else f", the first {len(shown)} of {len(held)} consumers"
    axes.set_title(f"The last packing of {picture.packing_of}{part}: one bar per consumer")
    axes.set_ylabel("percent of a consumer's capacity")
    axes.set_xlabel("consumer")
    axes.margins(x=0.01)
    axes.set_ylim(0, max(106, axes.get_ylim()[1]))
    step = max(1, len(shown) // _CONSUMER_NUMBERS_SHOWN_MAX)
    axes.set_xticks(range(0, len(shown), step), [str(c) for c in shown[::step]])


def _page(picture: Picture, drawing: str) -> str:
    drawing = drawing[drawing.index("<svg") :]
    columns = list(picture.rows[0])
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(row[name]))}</td>" for name in columns) + "</tr>"
        for row in picture.rows
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<title>penstock simulate</title><style>body{font:15px sans-serif;margin:2em}"
        "table{border-collapse:collapse}td,th{padding:.3em .7em;border-bottom:1px solid #ccc;"
        "text-align:right}td:first-child,th:first-child{text-align:left}svg{max-width:100%;"
        "height:auto}</style></head><body><h1>penstock simulate</h1>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{drawing}"
        "</body></html>\n"
    )
