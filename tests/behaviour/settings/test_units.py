"""Durations, sizes and speeds have units, which are never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.settings.units import (
    format_bytes,
    format_duration,
    format_speed,
    parse_bytes,
    parse_duration,
    parse_speed,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30), ("5m", 300), ("1.5h", 5400), ("7d", 604800), (" 2 s ", 2)],
)
def test_durations(text: str, seconds: float) -> None:
    """Each unit of duration converts to seconds."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        (512, 512),
        ("64kB", 64_000),
        ("2MiB", 2 * 2**20),
        ("5MB", 5_000_000),
        ("1GiB", 2**30),
    ],
)
def test_sizes(text: str | int, count: int) -> None:
    """Decimal and binary units differ; a bare whole number is bytes."""
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    ("text", "speed"), [("1.5MB/s", 1.5e6), ("800kB/s", 8e5), ("2MiB/s", 2**21), ("100", 100)]
)
def test_speeds(text: str, speed: float) -> None:
    """A speed is a size followed by /s."""
    assert parse_speed(text) == pytest.approx(speed)


@pytest.mark.parametrize(
    "text", ["30", 30, 2.5, "30 parsecs", "-5s", "s", "", "nan", "1e999s", "1e308d", "1e13s", None]
)
def test_wrong_durations_are_refused(text: object) -> None:
    """A duration without a unit, with a foreign unit, negative or without end is refused."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["3 parsecs", "-1MB", "MB", "inf", "1e308TB", True])
def test_wrong_sizes_are_refused(text: object) -> None:
    """A size with an unknown unit, negative or beyond all disks is refused."""
    with pytest.raises(ValueError, match="size"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["1MB", "fast", "1Mb/s", "-1MB/s", "/s", "1e308TB/s"])
def test_wrong_speeds_are_refused(text: str) -> None:
    """A speed without /s, with an unknown unit, negative or too large is refused."""
    with pytest.raises(ValueError, match="speed"):
        parse_speed(text)


@given(st.integers(0, 10**12))
def test_what_is_printed_reads_back(number: int) -> None:
    """Printed whole seconds, bytes and bytes per second parse to the same number."""
    assert parse_bytes(format_bytes(number)) == number
    assert parse_speed(format_speed(number)) == pytest.approx(number)
    assert parse_duration(format_duration(number)) == pytest.approx(number)
