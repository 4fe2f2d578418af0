"""How many names of batches a table's log remembers, and that it reads the others."""

from pathlib import Path

from deltalake import DeltaTable

from kit.lake.racing_writer import carry, open_table
from penstock.pipeline.recent_batches import ENTRIES_MAX, NAMES_MAX, RecentBatches


def _names(version: int, count: int) -> list[str]:
    return [f"{version}.{number}" for number in range(count)]


def test_names_are_bounded_and_the_oldest_entries_go_first() -> None:
    """With fifty batches an entry, forty entries; with one each, as many as ever."""
    some = RecentBatches()
    for version in range(1000):
        some.note(version, _names(version, 50))
    held = [version for version in range(1000) if some.of(version) is not None]
    assert held == list(range(960, 1000))
    assert len(held) * 50 == NAMES_MAX
    assert some.of(999) == tuple(_names(999, 50))
    some.clear()
    assert some.of(999) is None
    for version in range(2 * ENTRIES_MAX):
        some.note(version, _names(version, version % 2))
    assert [some.of(ENTRIES_MAX - 1), some.of(ENTRIES_MAX)] == [None, ()]


def test_the_newest_entry_stays_however_long_it_is() -> None:
    """Whoever waits for a batch looks for it there. An entry that is noted again counts once."""
    some = RecentBatches(names_max=3)
    some.note(1, ["a"])
    some.note(2, ["b", "c", "d", "e"])
    assert (some.of(1), some.of(2)) == (None, ("b", "c", "d", "e"))
    some.note(2, ["b"])
    some.note(3, ["c", "d"])
    assert (some.of(2), some.of(3)) == (("b",), ("c", "d"))


def test_a_batch_that_is_not_remembered_is_found_in_the_log(tmp_path: Path) -> None:
    """And one whose entry is cleaned away is said to be unknown."""
    table = open_table(str(tmp_path))
    log = table._log
    log._batches = RecentBatches(names_max=1)
    for number in range(3):
        assert carry(table, 0, 2, f"batch-{number}")
    newest = DeltaTable(tmp_path / "orders").version()
    assert [log._batches.of(newest - 2), log._batches.of(newest - 1)] == [None, None]
    first = log._storage.local_path(f"_delta_log/{newest - 2:020d}.json")
    name = next(one for one in first.read_text(encoding="utf-8").split('"') if "batch-0" in one)
    assert log.holds_batch(name, since=newest - 2, until=newest) is True
    assert log.holds_batch(name, since=newest - 1, until=newest) is False
    first.unlink()
    assert log.holds_batch(name, since=newest - 2, until=newest) is None
