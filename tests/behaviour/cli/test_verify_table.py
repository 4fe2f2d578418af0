"""The table of `penstock verify` fits a terminal and hides no difference."""

from dataclasses import replace

from rich.console import Console

from penstock.cli.verify import _as_table
from penstock.verification import PartitionVerdict, VerificationResult

TOPIC = "orders-of-the-north"
GOOD = PartitionVerdict(TOPIC, 0, 5_000_000, 5_000_000, 5_000_000, 0, 0, 0, 0, 0, changed=0)
LOST = PartitionVerdict(TOPIC, 1, 5, 5, 4, 0, 1, 0, 0, 0, changed=0)


def _shown(*partitions: PartitionVerdict) -> str:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(_as_table(VerificationResult(partitions)))
    return captured.get()


def test_an_exact_table_fits_80_columns() -> None:
    """Names and headings are whole; differences that no partition has are left out."""
    shown = _shown(GOOD)
    assert TOPIC in shown
    assert shown.split()[:6] == ["topic", "partition", "ledger", "kafka", "lake", "dead_letters"]
    assert "lost" not in shown


def test_content_that_was_not_compared_has_no_column() -> None:
    """A typed table has no key and value: a column of dashes said nothing."""
    typed = replace(GOOD, topic="orders", changed=None)
    assert "changed" not in _shown(typed)
    header, *rows = _shown(typed, replace(typed, changed=2)).splitlines()
    assert header.split()[6:] == ["changed"]
    assert [row.split()[-1] for row in rows] == ["-", "2"]


def test_a_difference_has_its_column() -> None:
    """One partition that lost a record is enough."""
    header, *rows = _shown(GOOD, LOST).splitlines()
    assert header.split()[6:] == ["lost"]
    assert rows[1].split()[-1] == "1"
