"""Remembered ledger entries are always those of the version the table stands at."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from penstock.pipeline.ledger_entries import VERSIONS_READ_MAX, LedgerEntries
from penstock.pipeline.storage import TableStorage
from penstock.settings.sections import LakeSettings

NAMES = ("g/a/0", "g/a/1", "g/a/2")


def move(place: Path, **entries: int) -> None:
    """A commit by any writer that moves entries."""
    write_deltalake(
        str(place),
        pa.table({"n": pa.array([1], pa.int64())}),
        mode="append",
        commit_properties=CommitProperties(
            app_transactions=[Transaction(f"g/a/{name[1:]}", at) for name, at in entries.items()]
        ),
    )


def opened(tmp_path: Path) -> tuple[Path, DeltaTable, LedgerEntries]:
    place = tmp_path / "lake" / "t"
    move(place, p0=5)
    storage = TableStorage(LakeSettings(root=str(tmp_path / "lake")), "t")
    return place, DeltaTable(str(place)), LedgerEntries(storage)


def truth(place: Path) -> dict[str, int | None]:
    table = DeltaTable(str(place))
    return {name: table.transaction_version(name) for name in NAMES}


def test_entries_follow_what_others_commit(tmp_path: Path) -> None:
    """Whoever commits in between, and whatever: the same answers as asking deltalake each time."""
    place, table, entries = opened(tmp_path)
    chance = random.Random(1)
    for number in range(20):
        assert entries.of(table, NAMES) == truth(place)
        for _ in range(chance.randrange(3)):
            moved = {f"p{one}": number * 10 for one in range(3) if chance.random() < 0.4}
            move(place, **moved)
        table.update_incremental()


def test_an_older_version_is_answered_as_it_was(tmp_path: Path) -> None:
    """The table was not refreshed: what came later is not seen."""
    place, table, entries = opened(tmp_path)
    assert entries.of(table, NAMES) == {"g/a/0": 5, "g/a/1": None, "g/a/2": None}
    move(place, p0=9)
    assert entries.of(table, NAMES) == {"g/a/0": 5, "g/a/1": None, "g/a/2": None}


def test_a_table_opened_anew_begins_anew(tmp_path: Path) -> None:
    """A table removed and made again under the same name shares no entry with the old one."""
    place, table, entries = opened(tmp_path)
    assert entries.of(table, NAMES)["g/a/0"] == 5
    place.rename(tmp_path / "aside")
    move(place, p1=7)
    assert entries.of(DeltaTable(str(place)), NAMES) == {"g/a/0": None, "g/a/1": 7, "g/a/2": None}


@pytest.mark.parametrize("gone", [True, False])
def test_commits_that_cannot_be_read_are_asked_about(tmp_path: Path, *, gone: bool) -> None:
    """A commit's file was cleaned away, or there are too many: the answer is still right."""
    place, table, entries = opened(tmp_path)
    entries.of(table, NAMES)
    for number in range(3 if gone else VERSIONS_READ_MAX + 2):
        move(place, p2=number + 1)
    if gone:
        DeltaTable(str(place)).create_checkpoint()
        (place / "_delta_log" / f"{2:020d}.json").rename(tmp_path / "cleaned-away")
    table.update_incremental()
    expected = {"g/a/0": 5, "g/a/1": None, "g/a/2": 3 if gone else VERSIONS_READ_MAX + 2}
    assert entries.of(table, NAMES) == expected
