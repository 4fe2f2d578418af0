"""Counts, speeds and durations as people read them."""

import pytest

from penstock.model.sentences import (
    age_text,
    counted,
    cut_at_word,
    duration_text,
    load_of_capacity,
    shortened_list,
    size_text,
    speed_text,
)


def test_counts_agree_with_their_noun() -> None:
    """One is singular, everything else is plural."""
    assert [counted(n, "move") for n in (0, 1, 2)] == ["0 moves", "1 move", "2 moves"]


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (0, "0 B/s"),
        (0.5, "0.5 B/s"),
        (999, "999 B/s"),
        (1_500, "1.5 kB/s"),
        (2_345_678, "2.346 MB/s"),
        (5e9, "5 GB/s"),
        (7.5e12, "7,500 GB/s"),
    ],
)
def test_a_speed_has_the_unit_that_fits(bytes_per_s: float, text: str) -> None:
    """Four figures at most, and no powers of ten."""
    assert speed_text(bytes_per_s) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0.04, "0 s"),
        (4.21, "4.2 s"),
        (7, "7 s"),
        (9.96, "10 s"),
        (45.4, "45 s"),
        (59.7, "1 min"),
        (2303.0, "38 min 23 s"),
        (3_600, "1 h"),
        (7_300, "2 h 1 min"),
        (86_400 * 3 + 4 * 3_600 + 59, "3 d 4 h"),
    ],
)
def test_a_duration_has_the_units_that_fit(seconds: float, text: str) -> None:
    """Nobody knows at a glance how long 2303.0 s are."""
    assert duration_text(seconds) == text


def test_an_age_is_short() -> None:
    """One unit: it grows while it is read."""
    ages = [age_text(seconds) for seconds in (1.4, 119, 2303, 7_300, 200_000)]
    assert ages == ["1 s", "119 s", "38 min", "2 h", "2 d"]


def test_a_load_stands_beside_its_capacity() -> None:
    """Both in the capacity's unit, however far above it the load is."""
    assert load_of_capacity(120_000, 100_000) == "120 of 100 kB/s"
    assert load_of_capacity(9e6, 2_000) == "9,000 of 2 kB/s"
    assert load_of_capacity(200_000, 2_000_000) == "0.2 of 2 MB/s"
    assert load_of_capacity(22_080, 2_000_000) == "22.08 kB/s of 2 MB/s"
    assert load_of_capacity(0, 2_000_000) == "0 of 2 MB/s"
    assert size_text(5_505_223) == "5.505 MB"


def test_a_long_text_is_cut_at_a_word() -> None:
    """What is left out is marked, and the whole is never longer than allowed."""
    text = "PYTHONPATH is /tmp/orders and not set"
    assert cut_at_word(text, len(text)) == text
    assert cut_at_word(text, 30) == "PYTHONPATH is /tmp/orders ..."
    assert cut_at_word(text, 29) == "PYTHONPATH is /tmp/orders ..."
    assert cut_at_word(text, 28) == "PYTHONPATH is ..."
    assert cut_at_word("x" * 50, 10) == "xxxxxx ..."
    assert all(len(cut_at_word(text, most)) <= most for most in range(5, 60))


def test_long_lists_are_cut() -> None:
    """The first few, and how many more."""
    assert shortened_list(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert shortened_list(["a", "b"], most=2) == "a, b"
