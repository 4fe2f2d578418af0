"""Durations, sizes and speeds have units, which are never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.settings.units import (
    format_bytes,
    format_duration,
    format_speed,
    format_speed_or_auto,
    parse_bytes,
    parse_duration,
    parse_speed,
    parse_speed_or_auto,
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
    ("text", "speed"), [("1.5MB/s", 1.5e6), ("800kB/s", 8e5), ("2MiB/s", 2**21), ("2000000", 2e6)]
)
def test_speeds(text: str, speed: float) -> None:
    """A speed is a size followed by /s."""
    assert parse_speed(text) == pytest.approx(speed)


def test_a_speed_may_be_left_to_penstock() -> None:
    """`auto` in any case, a speed, and both in the error."""
    assert (parse_speed_or_auto(" Auto "), parse_speed_or_auto("2MB/s")) == ("auto", 2e6)
    assert [format_speed_or_auto(one) for one in ("auto", 2e6)] == ["auto", "2MB/s"]
    with pytest.raises(ValueError, match=r"'fast' is not a speed, for instance 1.5MB/s; or auto"):
        parse_speed_or_auto("fast")


@pytest.mark.parametrize("text", ["2", 2, "0.5", "999"])
def test_a_speed_whose_unit_was_forgotten_is_refused(text: str | int) -> None:
    """`packing.capacity=2` was 2 bytes a second without a word; the error says what was meant."""
    with pytest.raises(ValueError, match=f"did you mean {text}MB/s"):
        parse_speed(text)
    assert parse_speed(f"{text}B/s") == float(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(494_327, "494.327kB"), (9_999, "9999B"), (1_234_567, "1.234567MB"), (2**20, "1MiB")],
)
def test_many_bytes_are_printed_with_a_larger_unit(count: int, text: str) -> None:
    """A person can read them, and they are still the same number."""
    assert format_bytes(count) == text
    assert parse_bytes(text) == count


def test_a_printed_speed_can_be_read_back_without_a_difference() -> None:
    """Also one that no larger unit gives exactly: it stays in bytes."""
    for exact in range(10_000, 3_000_000, 997):
        assert parse_speed(format_speed(exact)) == exact


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
