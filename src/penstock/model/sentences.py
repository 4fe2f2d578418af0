"""Lists, counts, speeds and durations in sentences for people."""

from collections.abc import Sequence

_TIMES = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
# Shorter durations have a tenth of a second.
_WHOLE_SECONDS_FROM_S = 10
_LEFT_OUT = " ..."
_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


def shortened_list(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def cut_at_word(text: str, length_max: int) -> str:
    """At most so long: what is left out begins with a word, and `...` says that it is."""
    if len(text) <= length_max:
        return text
    begin = text[: length_max - len(_LEFT_OUT)]
    kept = begin if text[len(begin)].isspace() else begin.rpartition(" ")[0]
    # A first word that is too long is cut all the same.
    return f"{kept.rstrip() or begin}{_LEFT_OUT}"


def counted(number: int, noun: str) -> str:
    """`1 move`, `2 moves`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def speed_text(bytes_per_s: float) -> str:
    """`120 kB/s`."""
    size, unit = _unit(bytes_per_s)
    return f"{_figure(bytes_per_s / size)} {unit}"


def size_text(size_bytes: float) -> str:
    """`5.505 MB`."""
    return speed_text(size_bytes).removesuffix("/s")


def load_of_capacity(load_bytes_per_s: float, capacity_bytes_per_s: float) -> str:
    """`120 of 100 kB/s` in the unit of the capacity; each in its own: `22 kB/s of 2 MB/s`."""
    size, unit = _unit(capacity_bytes_per_s)
    if 0 < load_bytes_per_s < size / 10:
        return f"{speed_text(load_bytes_per_s)} of {speed_text(capacity_bytes_per_s)}"
    load, capacity = load_bytes_per_s / size, capacity_bytes_per_s / size
    return f"{_figure(load)} of {_figure(capacity)} {unit}"


def duration_text(seconds: float) -> str:
    """`4.2 s`, `45 s`, `38 min 23 s`, `2 h 5 min`, `3 d 4 h`."""
    tenths = round(max(0.0, seconds), 1)
    if tenths < _WHOLE_SECONDS_FROM_S:
        return f"{tenths:g} s"
    whole = round(seconds)
    for size_s, unit, next_size_s, next_unit in _TIMES:
        if whole >= size_s:
            rest = whole % size_s // next_size_s
            return f"{whole // size_s} {unit}" + (f" {rest} {next_unit}" if rest else "")
    return f"{whole} s"


def age_text(seconds: float) -> str:
    """`3 min`, `2 h`: short, for the age of something that grows older while it is read."""
    for size_s, unit, _, _ in _TIMES:
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def _unit(bytes_per_s: float) -> tuple[float, str]:
    return next((one for one in _UNITS if bytes_per_s >= one[0]), _UNITS[-1])


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.4g}"
