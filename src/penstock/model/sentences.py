"""Lists, counts and speeds in sentences for people."""

from collections.abc import Sequence

_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


def shortened_list(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """`1 move`, `2 moves`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def speed_text(bytes_per_s: float) -> str:
    """`120 kB/s`."""
    size, unit = _unit(bytes_per_s)
    return f"{_figure(bytes_per_s / size)} {unit}"


def load_of_capacity(load_bytes_per_s: float, capacity_bytes_per_s: float) -> str:
    """`120 of 100 kB/s`: both in the unit of the capacity."""
    size, unit = _unit(capacity_bytes_per_s)
    load, capacity = load_bytes_per_s / size, capacity_bytes_per_s / size
    return f"{_figure(load)} of {_figure(capacity)} {unit}"


def _unit(bytes_per_s: float) -> tuple[float, str]:
    return next((one for one in _UNITS if bytes_per_s >= one[0]), _UNITS[-1])


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.4g}"
