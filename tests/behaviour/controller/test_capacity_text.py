"""What one consumer carries, in words."""

from typing import Any

import pytest

from penstock.controller.core.capacity_text import capacity_text


def row(bytes_per_s: float, source: str, *spread: float) -> dict[str, Any]:
    lowest, highest = spread or (None, None)
    return {
        "bytes_per_s": bytes_per_s,
        "source": source,
        "measured_bytes_per_s": bytes_per_s,
        "lowest_bytes_per_s": lowest,
        "highest_bytes_per_s": highest,
    }


def said(bytes_per_s: float, source: str, **topics: dict[str, Any]) -> str:
    found = {"bytes_per_s": bytes_per_s, "source": source, "topics": topics}
    return capacity_text({"capacity": found})


MIXED = (
    "one consumer carries 5 MB/s of all topics as they are written; of slow 1 MB/s "
    "(assumed: nothing is measured yet), of plain 50 MB/s (measured, 40 MB/s to 50 MB/s)"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (capacity_text({}), ""),
        (said(10e6, "assumed"), "one consumer carries 10 MB/s (assumed: nothing is measured yet)"),
        (
            said(2e6, "set", orders=row(1.1e6, "set", 1e6, 3e6)),
            "one consumer carries 2 MB/s (packing.capacity; measured 1.1 MB/s)",
        ),
        (
            said(2e6, "set", a=row(1e6, "set"), b=row(9e6, "set")),
            "one consumer carries 2 MB/s (packing.capacity; measured 1 MB/s to 9 MB/s)",
        ),
        (
            said(2e6, "set", a={**row(2e6, "set"), "measured_bytes_per_s": None}),
            "one consumer carries 2 MB/s (packing.capacity)",
        ),
        (
            said(2e6, "measured", orders=row(2e6, "measured", 1e6, 3e6)),
            "one consumer carries 2 MB/s (measured, 1 MB/s to 3 MB/s)",
        ),
        (
            said(2e6, "calibrated", orders=row(2e6, "calibrated", 2e6, 2e6)),
            "one consumer carries 2 MB/s (calibrated before the start)",
        ),
        (
            said(
                5e6,
                "assumed",
                plain=row(50e6, "measured", 40e6, 50e6),
                slow=row(1e6, "assumed"),
            ),
            MIXED,
        ),
    ],
)
def test_how_a_capacity_is_said(text: str, expected: str) -> None:
    """With its source and its spread; the dearest topic first."""
    assert text == expected


def test_many_topics_are_not_all_named() -> None:
    """Five, and how many more."""
    topics = {f"t{number}": row(1e6 + number, "measured", 1e6, 2e6) for number in range(7)}
    assert said(1e6, "measured", **topics).endswith(", and of 2 more")
