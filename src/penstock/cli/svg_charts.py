"""Small pictures as SVG text: lines over time, and bars against a limit. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

from penstock.model.sentences import duration_text

_WIDTH, _HEIGHT = 900, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 20, 14, 34
_ROW, _NAMES = 24, 190
_STEPS = (1, 2, 5, 10)
_LINES_MIN = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a picture; `tone` is the class that gives it its colour."""

    tone: str
    name: str
    values: Sequence[float]


def line_chart(
    lines: Sequence[Line], seconds: float, what: str, text: Callable[[float], str]
) -> str:
    """Values over time from 0; each line's points are even parts of the time."""
    marks = axis_marks(max((max(one.values) for one in lines), default=0.0))
    high = marks[-1]
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    parts = [_begin(f"{what} over {duration_text(round(seconds))}", _HEIGHT)]
    for mark in marks:
        y = _TOP + height * (1 - mark / high)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" '
                     f'y2="{y:.1f}"/><text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
                     f"{escape(text(mark))}</text>")  # fmt: skip
    for place, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = _LEFT + width * place
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 10}" text-anchor="{anchor}">'
                     f"{escape(duration_text(round(seconds * place)))}</text>")  # fmt: skip
    for line in lines:
        last = max(1, len(line.values) - 1)
        points = " ".join(
            f"{_LEFT + width * n / last:.1f},{_TOP + height * (1 - value / high):.1f}"
            for n, value in enumerate(line.values if len(line.values) > 1 else [*line.values] * 2)
        )
        parts.append(f'<polyline class="line {line.tone}" points="{points}"/>')
    return "".join([*parts, "</svg>"])


def bar_chart(
    values: Mapping[str, float],
    limits: Mapping[str, float],
    title: str,
    text: Callable[[float], str],
) -> str:
    """One bar for each name; what is over its limit has a colour of its own."""
    height = _ROW * len(values) + 12
    high = max([0.0, *limits.values(), *values.values()]) * 1.02
    width = _WIDTH - _NAMES - 110
    parts = [_begin(title, height)]
    for row, (name, value) in enumerate(values.items()):
        y, long = _ROW * row + 4, width * value / high
        tone = "hot" if value > limits[name] else "bar"
        x, begin = _NAMES + width * limits[name] / high, _ROW * row
        shown = name if len(name) <= 26 else f"{name[:23]}..."
        parts.append(f'<text x="{_NAMES - 8}" y="{y + 13}" text-anchor="end">{escape(shown)}</text>'
                     f'<rect class="{tone}" x="{_NAMES}" y="{y}" width="{long:.1f}" height="16"/>'
                     f'<text x="{_NAMES + long + 6:.1f}" y="{y + 13}">{escape(text(value))}</text>'
                     f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{begin}" '
                     f'y2="{begin + _ROW}"/>')  # fmt: skip
    return "".join([*parts, "</svg>"])


def axis_marks(highest: float) -> list[float]:
    """Round numbers from 0 to at least the highest."""
    if highest <= 0:
        return [0.0, 1.0]
    size = 10 ** floor(log10(highest / _LINES_MIN))
    step = next(size * one for one in _STEPS if highest / (size * one) <= 2 * _LINES_MIN)
    number = -int(-highest // step)
    return [step * mark for mark in range(number + 1)]


def _begin(title: str, height: int) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img"><title>{escape(title)}</title>'
