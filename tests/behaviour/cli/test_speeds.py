"""What `penstock speeds` shows: order, sparkline, and unknown values as a question mark."""

import pytest
from rich.console import Console

from kit.program import penstock
from penstock.cli.speeds import Reading, SortBy, _as_data, _chosen, _table, sparkline
from penstock.messages import PartitionSpeed, SpeedSource


def row(topic: str, partition: int, speed: float | None, end_offset: int = 0) -> PartitionSpeed:
    return PartitionSpeed(
        topic=topic,
        partition=partition,
        write_speed_bytes_per_s=speed,
        records_per_s=speed,
        end_offset=end_offset,
        source=None if speed is None else SpeedSource.LOG_DIRS,
    )


ROWS = [row("b", 0, 5.0, 9), row("a", 1, None), row("a", 0, 5.0, 3), row("c", 0, 7e6, 1)]
READING = Reading("monitor", 0.5, ROWS)


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        (SortBy.SPEED, ["c0", "a0", "b0", "a1"]),
        (SortBy.RECORDS, ["c0", "a0", "b0", "a1"]),
        (SortBy.OFFSET, ["b0", "a0", "c0", "a1"]),
        (SortBy.NAME, ["a0", "a1", "b0", "c0"]),
    ],
)
def test_order(sort: SortBy, names: list[str]) -> None:
    """The largest values come first, ties by name, unknown last; names ascend."""
    shown = _chosen(READING, None, sort, None).partitions
    assert [f"{one.topic}{one.partition}" for one in shown] == names


def test_patterns_and_number() -> None:
    """Only topics that match completely are shown, up to the requested number."""
    assert len(_chosen(READING, ["a|b"], SortBy.NAME, None).partitions) == 3
    assert len(_chosen(READING, ["a|b"], SortBy.NAME, 2).partitions) == 2


def test_unknown_is_a_question_mark_and_absent() -> None:
    """An unknown value is `?` in the table and absent in JSON, never zero."""
    only = Reading("monitor", 0.5, [row("a", 1, None)])
    console = Console(width=120)
    with console.capture() as capture:
        console.print(_table(only, {}))
    assert "?" in capture.get()
    assert "0 B/s" not in capture.get().splitlines()[-1]
    assert "write_speed_bytes_per_s" not in _as_data(only)["partitions"][0]


def test_sparkline() -> None:
    """The tallest bar is the largest value; all zeros are flat."""
    assert sparkline([0, 50, 100]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_wrong_use_is_an_error() -> None:
    """A pattern or duration that does not parse is a usage error."""
    for arguments in (("--topic", "("), ("--over", "soon")):
        assert penstock("speeds", *arguments).returncode == 2
