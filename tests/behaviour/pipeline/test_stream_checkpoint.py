"""Checkpoints that are made piece by piece, and the clean-up after them, on real Delta tables."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from kit.lake.log_histories import checkpoint, split_checkpoint
from kit.lake.racing_writer import carry, open_table
from penstock.pipeline import checkpoints, log_replay, make_checkpoint, stream_checkpoint
from penstock.pipeline.checkpoints import CheckpointMaker
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.log_cleanup import clean_up_log
from penstock.pipeline.log_entries import LogNotUnderstoodError
from penstock.pipeline.log_replay import replay
from penstock.pipeline.removed_files import delete_removed, named_files
from penstock.settings.sections import LakeSettings

MANY_ROWS = make_checkpoint.ROWS_FOR_DELTALAKE_MAX + 1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _lake(root: Path) -> LakeSettings:
    return LakeSettings(root=str(root), group="g")


def _log(root: Path) -> Path:
    return root / "orders" / "_delta_log"


def _carried(root: Path, batches: int) -> LakeTable:
    table = open_table(str(root))
    for number in range(batches):
        assert carry(table, number % 3, 2, f"{number}-{_now_ms()}")
    return table


def _without_entries(root: Path) -> None:
    for entry in sorted(_log(root).glob("*.json"))[:-1]:
        entry.unlink()


def test_a_consumer_goes_on_from_it(tmp_path: Path) -> None:
    """Who has nothing but the checkpoint reads the ledger and commits on top of it."""
    table = _carried(tmp_path, 7)
    stream_checkpoint.make_next_checkpoint(table.storage, _now_ms())
    _without_entries(tmp_path)
    fresh = LakeTable(_lake(tmp_path), "orders")
    assert fresh.next_offsets(["g/id/0", "g/id/1"]) == {"g/id/0": 6, "g/id/1": 4}
    assert carry(fresh, 0, 2, "next")
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 16


def test_no_piece_is_as_large_as_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files there are, so many are held; a consumer reads one row group of it."""
    monkeypatch.setattr(log_replay, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(stream_checkpoint, "_GROUP_ROWS", 4)
    table = _carried(tmp_path, 20)
    DeltaTable(tmp_path / "orders").create_checkpoint()
    assert carry(table, 0, 2, "last")
    found = replay(table.storage)
    sizes = [len(adds) for adds, _ in found.unchanged_files()]
    assert max(sizes) <= 3
    assert sum(sizes) == 20
    stream_checkpoint.write_checkpoint(found, _now_ms())
    path = _log(tmp_path) / f"{found.version:020d}.checkpoint.parquet"
    footer = pyarrow.parquet.read_metadata(path)
    rows = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    assert sum(rows) == 21 + len(found.transactions) + 2
    assert rows[0] == len(found.transactions) + 2
    assert max(rows[1:]) <= 4 + 3
    hint = json.loads((_log(tmp_path) / "_last_checkpoint").read_text())
    assert hint == {
        "version": found.version,
        "size": sum(rows),
        "sizeInBytes": path.stat().st_size,
        "numOfAddFiles": 21,
    }


def test_a_removed_file_is_named_until_its_time_is_over(tmp_path: Path) -> None:
    """By the table's own property; it may be read in old versions until then."""
    table = _carried(tmp_path, 3)
    DeltaTable(tmp_path / "orders").alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 60 seconds"}
    )
    DeltaTable(tmp_path / "orders").delete("partition = 1")
    for later_s, is_named in ((30, True), (90, False)):
        found = replay(table.storage)
        stream_checkpoint.write_checkpoint(found, _now_ms() + 1000 * later_s)
        path = _log(tmp_path) / f"{found.version:020d}.checkpoint.parquet"
        rows = pyarrow.parquet.read_table(path)
        assert (rows["remove"].null_count < len(rows)) == is_named
        assert carry(table, 0, 2, f"{later_s}"), "the next checkpoint is made from this one"
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 8


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableDeletionVectors": "true"},
        {"delta.setTransactionRetentionDuration": "interval 1 days"},
        {"delta.checkpoint.writeStatsAsStruct": "true"},
        {"delta.deletedFileRetentionDuration": "interval 1 months"},
        {"delta.deletedFileRetentionDuration": "interval 9999999999 days"},
        {"delta.deletedFileRetentionDuration": None},
    ],
)
def test_what_is_not_understood_is_left_to_deltalake(
    tmp_path: Path, properties: dict[str, str | None]
) -> None:
    """Before anything is written; the child makes the checkpoint all the same."""
    table = _carried(tmp_path, 3)
    entry = _log(tmp_path) / f"{0:020d}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        line.get("metaData", {}).get("configuration", {}).update(properties)
    entry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(LogNotUnderstoodError):
        stream_checkpoint.make_next_checkpoint(table.storage, _now_ms())
    assert not list(_log(tmp_path).glob("*checkpoint*"))
    if all(properties.values()) and "months" not in str(properties):
        make_checkpoint.make_checkpoint(table.storage.uri, {}, MANY_ROWS)
        assert len(list(_log(tmp_path).glob("*.checkpoint.parquet"))) == 1


@pytest.mark.parametrize(
    "action",
    [
        {"domainMetadata": {"domain": "d", "configuration": "", "removed": False}},
        {"add": {"path": "a", "deletionVector": {"storageType": "u"}}},
        {"remove": {"path": "a", "baseRowId": 4}},
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["v2Checkpoint"],
            }
        },
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 6}},
        {"protocol": {"minReaderVersion": "x", "minWriterVersion": 2}},
        {"remove": {"path": "a", "dataChange": True}, "txn": {"appId": "a", "version": 1}},
        {"add": {"size": 4}},
        {"add": 4},
    ],
)
def test_an_action_of_an_unknown_feature_is_not_left_out(tmp_path: Path, action: Any) -> None:
    """A checkpoint without it would lose what it says."""
    table = _carried(tmp_path, 2)
    (_log(tmp_path) / f"{3:020d}.json").write_text(json.dumps(action) + "\n")
    with pytest.raises(LogNotUnderstoodError):
        replay(table.storage)


def _action(kind: str, path: str, **more: Any) -> dict[str, Any]:
    file = {"path": path, "partitionValues": {}, "size": 4, "dataChange": True}
    return {kind: {**file, "modificationTime": 1, **more}}


def _append(root: Path, version: int, *actions: dict[str, Any]) -> None:
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    (_log(root) / f"{version:020d}.json").write_text(text)


@pytest.mark.parametrize("kinds", [("add", "remove"), ("remove", "add"), ("add", "add")])
def test_an_entry_that_names_a_file_twice_is_left_to_deltalake(
    tmp_path: Path, kinds: tuple[str, str]
) -> None:
    """For deltalake the first one counts, for delta-spark the last one: the format forbids it."""
    table = _carried(tmp_path, 2)
    _append(tmp_path, 3, *(_action(kind, "a") for kind in kinds))
    with pytest.raises(LogNotUnderstoodError, match="twice"):
        replay(table.storage)


@pytest.mark.parametrize(
    "damage",
    [{"size": "4"}, {"size": 2**64}, {"partitionValues": {"day": 5}}, {"tags": [["a", "b"]]}],
)
def test_a_value_of_another_type_is_left_to_deltalake(
    tmp_path: Path, damage: dict[str, Any]
) -> None:
    """Whoever looks at the files finds it, and has nothing written or removed before."""
    table = _carried(tmp_path, 2)
    _append(tmp_path, 3, _action("add", "a", **damage))
    found = replay(table.storage)
    with pytest.raises(LogNotUnderstoodError):
        list(named_files(found))
    with pytest.raises(LogNotUnderstoodError):
        delete_removed(found, _now_ms())
    with pytest.raises(LogNotUnderstoodError):
        stream_checkpoint.write_checkpoint(found, _now_ms())
    assert {one.suffix for one in _log(tmp_path).iterdir()} == {".json"}


def test_a_removed_name_from_elsewhere_is_no_file_of_the_table(tmp_path: Path) -> None:
    """Whatever another tool calls removed: not the files of its neighbours, and not its log."""
    table = _carried(tmp_path, 1)
    (tmp_path / "other.parquet").write_bytes(b"")
    entry = f"_delta_log/{0:020d}.json"
    names = ["../other.parquet", "%2E%2E/other.parquet", entry, f"./{entry}", "", "a%00", "b"]
    (tmp_path / "orders" / "b").write_bytes(b"")
    _append(tmp_path, 2, *(_action("remove", name, deletionTimestamp=1) for name in names))
    assert delete_removed(replay(table.storage), _now_ms()) == 1
    assert (tmp_path / "other.parquet").exists()
    assert (tmp_path / "orders" / entry).exists()
    assert not (tmp_path / "orders" / "b").exists()


def test_a_log_with_a_gap_gets_no_checkpoint(tmp_path: Path) -> None:
    """It would hide the entries after the gap for good."""
    table = _carried(tmp_path, 4)
    (_log(tmp_path) / f"{2:020d}.json").unlink()
    with pytest.raises(LogNotUnderstoodError, match="gap"):
        replay(table.storage)


def test_a_table_that_was_made_again_gets_no_checkpoint_of_the_old_one(tmp_path: Path) -> None:
    """The log is looked at before the checkpoint gets its name."""
    table = _carried(tmp_path, 4)
    found = replay(table.storage)
    table.storage.delete_folder("")
    _carried(tmp_path, 4)
    with pytest.raises(stream_checkpoint.LogReplacedError):
        stream_checkpoint.write_checkpoint(found, _now_ms())
    assert {one.suffix for one in _log(tmp_path).iterdir()} == {".json"}


def test_an_older_checkpoint_does_not_take_the_hint(tmp_path: Path) -> None:
    """A slow child ends after another consumer's."""
    table = _carried(tmp_path, 3)
    found = replay(table.storage)
    assert carry(table, 0, 2, "more")
    DeltaTable(tmp_path / "orders").create_checkpoint()
    stream_checkpoint.write_checkpoint(found, _now_ms())
    assert json.loads((_log(tmp_path) / "_last_checkpoint").read_text())["version"] == 4
    assert (_log(tmp_path) / f"{3:020d}.checkpoint.parquet").exists()


def test_a_checkpoint_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    """Two children that make the same one do no harm."""
    table = _carried(tmp_path, 3)
    stream_checkpoint.make_next_checkpoint(table.storage, _now_ms())
    path = _log(tmp_path) / f"{3:020d}.checkpoint.parquet"
    before = path.stat().st_ino
    stream_checkpoint.make_next_checkpoint(table.storage, _now_ms())
    assert path.stat().st_ino == before


def test_a_checkpoint_is_named_before_entries_are_removed(tmp_path: Path) -> None:
    """Its writer was killed before it had named it; writers that stood still look at the hint."""
    table = _carried(tmp_path, 3)
    far_ms = _now_ms() + 10**11
    stream_checkpoint.write_checkpoint(replay(table.storage), far_ms)
    (_log(tmp_path) / "_last_checkpoint").unlink()
    stream_checkpoint.make_next_checkpoint(table.storage, far_ms)
    hint = json.loads((_log(tmp_path) / "_last_checkpoint").read_text())
    rows = pyarrow.parquet.read_metadata(_log(tmp_path) / f"{3:020d}.checkpoint.parquet").num_rows
    assert hint == {"version": 3, "size": rows}
    assert len(list(_log(tmp_path).glob("*.json"))) == 1


@pytest.mark.parametrize("is_named", [True, False])
def test_a_version_has_one_checkpoint(tmp_path: Path, *, is_named: bool) -> None:
    """One in parts stays the only one: DuckDB refuses a hint of one part where it finds two."""
    table = _carried(tmp_path, 5)
    place = tmp_path / "orders"
    split_checkpoint(place, checkpoint(place), 2)
    if not is_named:
        (_log(tmp_path) / "_last_checkpoint").unlink()
    stream_checkpoint.make_next_checkpoint(table.storage, _now_ms())
    assert len(list(_log(tmp_path).glob("*.checkpoint*"))) == 2
    assert json.loads((_log(tmp_path) / "_last_checkpoint").read_text())["parts"] == 2
    assert len(DeltaTable(place).to_pyarrow_table()) == 10


@pytest.mark.parametrize("rows", [0, MANY_ROWS], ids=["by deltalake", "in pieces"])
@pytest.mark.parametrize("cleans_up", [True, False])
def test_both_ways_remove_the_same_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, *, cleans_up: bool
) -> None:
    """Those whose time is over, but never one that a younger version is read by."""
    table = _carried(tmp_path, 0)
    DeltaTable(tmp_path / "orders").alter.set_table_properties(
        {
            "delta.logRetentionDuration": "interval 60 seconds",
            "delta.enableExpiredLogCleanup": str(cleans_up).lower(),
        }
    )
    for number in range(4):
        assert carry(table, 0, 2, f"{number}")
    DeltaTable(tmp_path / "orders").create_checkpoint()
    for old in _log(tmp_path).iterdir():
        os.utime(old, (time.time() - 90, time.time() - 90))
    for number in range(4, 7):
        assert carry(table, 0, 2, f"{number}")
    monkeypatch.setattr(checkpoints, "hinted_rows", lambda _: rows)
    maker = CheckpointMaker(_lake(tmp_path))
    assert maker._run_child(table.storage) is None
    left = [int(one.stem) for one in sorted(_log(tmp_path).glob("*.json"))]
    assert left == ([5, 6, 7, 8] if cleans_up else list(range(9)))
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 14
    assert len(DeltaTable(tmp_path / "orders", version=6).to_pyarrow_table()) == 10


def test_a_quiet_table_keeps_its_newest_version(tmp_path: Path) -> None:
    """When the time of all entries is over."""
    table = _carried(tmp_path, 5)
    far_ms = _now_ms() + 10**11
    assert clean_up_log(replay(table.storage), far_ms) == 0, "there is no checkpoint"
    stream_checkpoint.make_next_checkpoint(table.storage, far_ms)
    assert sorted(one.name for one in _log(tmp_path).iterdir()) == [
        f"{5:020d}.checkpoint.parquet",
        f"{5:020d}.json",
        "_last_checkpoint",
    ]
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 10


def test_a_killed_child_leaves_nothing_that_stays(tmp_path: Path) -> None:
    """A part of a checkpoint has no reader, and a later child removes it."""
    table = _carried(tmp_path, 3)
    left = (
        _log(tmp_path)
        / f"{stream_checkpoint.TEMPORARY_PREFIX}x{stream_checkpoint.TEMPORARY_SUFFIX}"
    )
    left.write_bytes(b"half")
    assert len(DeltaTable(tmp_path / "orders").to_pyarrow_table()) == 6
    make_checkpoint.remove_temporary_files(_log(tmp_path), 60, time.time())
    assert left.exists(), "it may be of a child that runs"
    make_checkpoint.remove_temporary_files(_log(tmp_path), 60, time.time() + 61)
    assert not left.exists()
    assert table.versions()[0] == 3


def test_a_file_that_was_added_again_is_not_deleted(tmp_path: Path) -> None:
    """Another tool may spell its name in another way: the one that was removed is this file."""
    table = _carried(tmp_path, 1)
    (file,) = table.active()
    spelled = file.path.replace("topic-id", "topic%2Did")
    add = {
        "path": spelled,
        "partitionValues": {},
        "size": file.size_bytes,
        "modificationTime": 1,
        "dataChange": False,
    }
    remove = {"path": file.path, "dataChange": False, "deletionTimestamp": 1, "size": 4}
    text = "".join(f"{json.dumps(one)}\n" for one in ({"remove": remove}, {"add": add}))
    (tmp_path / f"orders/_delta_log/{2:020d}.json").write_text(text)
    assert table.vacuum() == 0
    assert Path(table.storage.uri, file.path).exists()
