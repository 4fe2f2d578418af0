"""The state that is read from the log, without files, is the one that deltalake reads with them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, Field
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from kit.lake.log_histories import (
    NAMES,
    checkpoint,
    clean_up,
    described,
    log_of,
    make_table,
    move,
    replace_table,
    split_checkpoint,
    truth,
)
from penstock.model import TopicPartition
from penstock.pipeline import LakeRefusedError
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.log_entries import LogNotUnderstoodError
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_with_files import TableWithFiles
from penstock.settings.sections import LakeSettings


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table with twelve versions, a checkpoint in the middle, and a change of each kind."""
    place = tmp_path / "orders"
    make_table(place)
    move(place, {NAMES[0]: 5, NAMES[1]: 1})
    DeltaTable(str(place)).alter.add_columns([Field("more", PrimitiveType("string"))])
    for number in range(4):
        move(place, {NAMES[0]: 10 + number})
    checkpoint(place)
    DeltaTable(str(place)).alter.set_table_properties({"delta.targetFileSize": "77"})
    for number in range(4):
        move(place, {NAMES[1]: 20 + number})
    return place


def _hint(place: Path) -> Path:
    return place / "_delta_log" / "_last_checkpoint"


def _hint_says(place: Path, **hint: Any) -> None:
    _hint(place).write_text(json.dumps(hint), encoding="utf-8")


def _later_checkpoint_without_a_hint(place: Path) -> None:
    kept = _hint(place).read_bytes()
    checkpoint(place)
    clean_up(place)
    _hint(place).write_bytes(kept)


def _cleaned_away(place: Path) -> None:
    checkpoint(place)
    clean_up(place)


def _parts_without_a_hint(place: Path) -> None:
    split_checkpoint(place, checkpoint(place), 3)
    _hint(place).unlink()


def _no_checkpoint(place: Path) -> None:
    for file in place.glob("_delta_log/*check*"):
        file.unlink()


def _parts_are_missing(place: Path) -> None:
    version = checkpoint(place)
    split_checkpoint(place, version, 3)
    next((place / "_delta_log").glob("*.checkpoint.0000000002.*")).unlink()


LOGS: dict[str, Callable[[Path], object]] = {
    "a checkpoint and entries": lambda _: None,
    "no hint": lambda place: _hint(place).unlink(),
    "a hint that is no JSON": lambda place: _hint(place).write_bytes(b"\xff{"),
    "a hint that is no object": lambda place: _hint(place).write_text("[1]"),
    "a hint without a version": lambda place: _hint_says(place, size=1),
    "a hint at a checkpoint that is not there": lambda place: _hint_says(place, version=8, size=1),
    "a hint before the first version": lambda place: _hint_says(place, version=-1, size=1),
    "an old hint, entries cleaned away": _later_checkpoint_without_a_hint,
    "entries cleaned away": _cleaned_away,
    "a checkpoint of everything": checkpoint,
    "a checkpoint in parts": lambda place: split_checkpoint(place, checkpoint(place), 3),
    "one in parts, no hint": _parts_without_a_hint,
    "a checkpoint that misses a part": _parts_are_missing,
    "no checkpoint": _no_checkpoint,
    "a commit that is under way": lambda place: (
        place / "_delta_log" / "_commit_1.json.tmp"
    ).write_text("{"),
}


@pytest.mark.parametrize("made", LOGS)
def test_a_log_says_what_deltalake_reads_in_it(place: Path, made: str) -> None:
    """Wherever the newest checkpoint is, whatever the hint says, and however old the log is."""
    expected = truth(place)
    LOGS[made](place)
    log = log_of(place)
    assert described(log.newest()) == expected
    # deltalake does not read a table whose hint is wrong; we do.
    _hint(place).unlink(missing_ok=True)
    move(place, {NAMES[2]: 99})
    assert described(log.newest()) == truth(place)


def test_the_list_of_files_is_not_read(place: Path) -> None:
    """The column with the files' names is destroyed, and the state is still read."""
    version = checkpoint(place)
    expected = truth(place)
    file = place / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    _destroy(file, "add.path", range(1))
    assert described(log_of(place).newest()) == expected
    with pytest.raises(OSError, match=r"(?i)page|thrift"):
        pyarrow.parquet.read_table(file)


def test_parts_of_a_checkpoint_that_only_name_files_are_skipped(place: Path) -> None:
    """Row groups without a ledger entry, metadata or protocol are known by their statistics."""
    for _ in range(8):
        move(place, {})
    version = checkpoint(place)
    expected = truth(place)
    file = place / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    rows = pyarrow.parquet.read_table(file)
    is_file = pa.compute.is_valid(rows["add"])
    ordered = pa.concat_tables([rows.filter(is_file), rows.filter(pa.compute.invert(is_file))])
    pyarrow.parquet.write_table(ordered, file, row_group_size=2)
    _destroy(file, "txn.appId", range(4))
    assert described(log_of(place).newest()) == expected


def _destroy(file: Path, column: str, groups: range) -> None:
    """Overwrite a column's pages in some row groups."""
    metadata = pyarrow.parquet.read_metadata(file)
    content = bytearray(file.read_bytes())
    for number in groups:
        group = metadata.row_group(number)
        every = (group.column(one) for one in range(group.num_columns))
        chunk = next(one for one in every if one.path_in_schema == column)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(bytes(content))


def test_a_later_look_reads_what_is_new(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question for the next version, and no listing, however long the log is."""
    log = log_of(place)
    log.newest()
    read, asked = TableStorage.read_marked, []

    def noted(self: TableStorage, path: str) -> Any:
        asked.append(path)
        return read(self, path)

    monkeypatch.setattr(TableStorage, "read_marked", noted)
    monkeypatch.delattr(TableStorage, "file_names")
    monkeypatch.delattr(TableStorage, "open_file")
    with pytest.raises(AttributeError):
        log_of(place).newest()
    monkeypatch.undo()
    monkeypatch.setattr(TableStorage, "read_marked", noted)
    monkeypatch.delattr(TableStorage, "file_names")
    asked.clear()
    before = log.newest()
    assert before is not None
    move(place, {NAMES[0]: 70})
    after = log.newest()
    assert after is not None
    assert after.transactions.get(NAMES[0]) == 70
    assert before.transactions.get(NAMES[0]) == 13, "a state never changes"
    number = before.version
    assert asked == [f"_delta_log/{number + one:020d}.json" for one in (1, 1, 2)]


@pytest.mark.parametrize("commits", [2, 10, 15], ids=["shorter", "as long", "longer"])
def test_a_table_that_was_made_again_is_read_anew(place: Path, commits: int) -> None:
    """Nothing of the old table is left, whichever version the new one has."""
    log = log_of(place)
    old = described(log.newest())
    replace_table(place, commits)
    new = described(log.newest())
    assert new == truth(place)
    assert new["id"] != old["id"]
    assert new["ledger"] == {NAMES[0]: None, NAMES[1]: None, NAMES[2]: 1000 + commits - 1}


def test_a_table_that_is_gone_is_none(place: Path, tmp_path: Path) -> None:
    """Also one whose folder is there without a log."""
    log = log_of(place)
    assert log.newest() is not None
    shutil.rmtree(place)
    assert log.newest() is None
    (tmp_path / "other" / "_delta_log").mkdir(parents=True)
    assert log_of(tmp_path / "other").newest() is None
    assert log_of(tmp_path / "never").newest() is None


def test_a_log_that_was_cleaned_behind_us_is_read_anew(place: Path) -> None:
    """The entries that we have not read are gone; the checkpoint has what they said."""
    log = log_of(place)
    log.newest()
    for number in range(5):
        move(place, {NAMES[2]: number})
    checkpoint(place)
    clean_up(place)
    move(place, {NAMES[0]: 500})
    assert described(log.newest()) == truth(place)


def _version_2_by_the_hint(place: Path) -> None:
    version = checkpoint(place)
    _hint_says(place, version=version, size=1, v2Checkpoint={"path": "x"})


def _version_2_by_its_name(place: Path) -> None:
    version = checkpoint(place)
    log = place / "_delta_log"
    stem = f"{version:020d}.checkpoint"
    unique = "80a083e8-7026-4e79-81be-64bd76c43a11"
    (log / f"{stem}.parquet").rename(log / f"{stem}.{unique}.parquet")
    _hint(place).unlink()


def _version_2_by_its_columns(place: Path) -> None:
    version = checkpoint(place)
    file = place / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    rows = pyarrow.parquet.read_table(file)
    said = pa.array([{"version": version}] + [None] * (len(rows) - 1))
    pyarrow.parquet.write_table(rows.append_column("checkpointMetadata", said), file)


@pytest.mark.parametrize(
    "made", [_version_2_by_the_hint, _version_2_by_its_name, _version_2_by_its_columns]
)
def test_what_is_not_understood_is_left_to_deltalake(
    place: Path, made: Callable[[Path], None]
) -> None:
    """A table with a checkpoint of version 2 has the same answers, and takes commits."""
    made(place)
    with pytest.raises(LogNotUnderstoodError):
        log_of(place).newest()
    table = LakeTable(LakeSettings(root=str(place.parent)), place.name)
    assert table.next_offsets(NAMES) == {NAMES[0]: 13, NAMES[1]: 23, NAMES[2]: None}
    table.commit([LedgerMove(TopicPartition("a", 2), NAMES[2], None, 7)], [], batch="b")
    assert table.next_offsets(NAMES)[NAMES[2]] == 7
    assert DeltaTable(str(place)).transaction_version(NAMES[2]) == 7


HARMS: dict[str, Callable[[Path], object]] = {
    "an entry that is cut": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "an entry without an object": lambda file: file.write_text("nonsense"),
    "an entry of another kind": lambda file: file.write_text('{"txn":{"appId":"x"}}'),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_entry_is_an_error(place: Path, harm: str) -> None:
    """Nothing is made up, neither at the first look nor at a later one."""
    table = LakeTable(LakeSettings(root=str(place.parent)), place.name)
    table.next_offsets(NAMES)
    move(place, {NAMES[2]: 8})
    HARMS[harm](max((place / "_delta_log").glob("*.json")))
    for look in (table, LakeTable(LakeSettings(root=str(place.parent)), place.name)):
        with pytest.raises((LakeRefusedError, DeltaError)):
            look.next_offsets(NAMES)


def test_a_batch_does_not_open_the_table_with_its_files(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything a consumer does from batch to batch is done with the log alone."""

    def opened(_: TableWithFiles) -> None:
        raise AssertionError("opened with its files")

    monkeypatch.setattr(TableWithFiles, "newest", opened)
    table = LakeTable(LakeSettings(root=str(place.parent)), place.name)
    fields = [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]
    for start in (None, 3, 6):
        moves = [LedgerMove(TopicPartition("a", 2), NAMES[2], start, (start or 0) + 3)]
        assert table.next_offsets(NAMES)[NAMES[2]] == start
        assert table.last_epochs(NAMES, "c") == {}
        assert table.leader_epochs(NAMES) == {}
        table.require_current(moves)
        table.open_for(json.dumps({"type": "struct", "fields": fields}), ())
        table.commit(moves, [], batch=f"b{start}")
    monkeypatch.undo()
    assert DeltaTable(str(place)).transaction_version(NAMES[2]) == 9
