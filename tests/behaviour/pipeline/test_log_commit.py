"""Entries that we write ourselves: as deltalake writes them, and read by every reader."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from kit.lake.commit_ways import commit_by, disturb_commits
from kit.lake.log_histories import checkpoint
from penstock.model import TopicPartition
from penstock.pipeline import TableNotServedError
from penstock.pipeline.lake_commit import RANGES_KEY, LakeTable, LedgerMove
from penstock.pipeline.log_entries import BATCH_KEY, encoded_path
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.stream_checkpoint import make_next_checkpoint
from penstock.pipeline.written_files import WrittenFile, written_files
from penstock.settings.sections import LakeSettings

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("offset", "long"), ("text", "string"), ("day", "string"))
        ],
    }
)
DAYS = ("2026-01-31", "a b", "50%", "ä/漢#?", "=:,'\"\\", None)


def _table(root: Path, name: str = "orders") -> LakeTable:
    table = LakeTable(LakeSettings(root=str(root), group="g"), name)
    table.open_for(SCHEMA, ("day",))
    return table


def _file(table: LakeTable, offset: int, day: str | None) -> WrittenFile:
    """A file of one row, in a folder that is named as Spark names it."""
    value = "__HIVE_DEFAULT_PARTITION__" if day is None else quote(day, safe="")
    folder = f"data/g/1-1/{offset}.id.0.{offset}"
    path = Path(table.storage.uri) / folder / "topic-id" / f"day={value}" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    rows = pa.table({"offset": [offset], "text": [f'"{offset}"\n漢\u2028']})
    pa.parquet.write_table(rows, path)
    (written,) = written_files(table.storage, folder)
    return written


def _carry(table: LakeTable, start: int = 0) -> None:
    """A row for each day, in a commit of its own."""
    for offset, day in enumerate(DAYS, start=start):
        move = LedgerMove(TopicPartition("orders", 0), "g/id/0", offset or None, offset + 1)
        notes = {RANGES_KEY: {"g/id/0": [offset, offset + 1]}}
        table.commit([move], [_file(table, offset, day)], batch=f"b{offset}", notes=notes)


def _actions(root: Path, name: str) -> list[dict[str, Any]]:
    files = sorted((root / name / "_delta_log").glob("*.json"))[1:]
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


def test_our_entries_say_what_those_of_deltalake_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths, partition values, statistics, ledger moves and our notes are the same."""
    _carry(_table(tmp_path, "ours"))
    commit_by(monkeypatch, "deltalake")
    _carry(_table(tmp_path, "theirs"))
    ours, theirs = _actions(tmp_path, "ours"), _actions(tmp_path, "theirs")
    assert len(ours) == len(theirs) == 3 * len(DAYS)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for kind in mine:
            shown = {key: value for key, value in other[kind].items() if value is not None}
            changing = {"timestamp", "modificationTime", "engineInfo", "clientVersion"}
            assert {key: mine[kind][key] for key in mine[kind] if key not in changing} == {
                key: shown[key] for key in shown if key not in changing
            }


def test_a_path_is_encoded_as_deltalake_does_it(tmp_path: Path) -> None:
    """Every character that a file name can have, so that a path has one spelling in the log."""
    names = "".join(chr(code) for code in range(1, 128) if chr(code) != "/") + "é漢😀\u2028"
    table = DeltaTable.create(str(tmp_path / "t"), schema=pa.schema([("n", pa.int64())]))
    table.create_write_transaction(
        [AddAction(f"data/{names}/p", 1, {}, 1, True, "{}")], "append", table.schema()
    )
    entry = (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").read_text("utf-8")
    (added,) = [json.loads(line)["add"] for line in entry.splitlines() if '"add"' in line]
    assert encoded_path(f"data/{names}/p") == added["path"]


def _expected(rows: int) -> list[tuple[int, str | None]]:
    return [(offset, DAYS[offset % len(DAYS)]) for offset in range(rows)]


def _by_deltalake(place: Path) -> list[tuple[int, str | None]]:
    rows = DeltaTable(place).to_pyarrow_table()
    return sorted(zip(rows["offset"].to_pylist(), rows["day"].to_pylist(), strict=True))


def _by_polars(place: Path) -> list[tuple[int, str | None]]:
    """In a process of its own, as polars starts threads that outlive a test."""
    script = (
        "import json, sys, polars; rows = polars.read_delta(sys.argv[1]).sort('offset'); "
        "print(json.dumps([rows['offset'].to_list(), rows['day'].to_list()]))"
    )
    return _in_a_process(script, place)


def _by_duckdb(place: Path) -> list[tuple[int, str | None]]:
    script = (
        "import json, sys, duckdb; from duckdb_extensions import import_extension; "
        "import_extension('delta'); duckdb.sql('SET enable_progress_bar = false'); "
        "rows = duckdb.sql("
        'f"select \\"offset\\", day from delta_scan(\'{sys.argv[1]}\') order by 1").fetchall(); '
        "print(json.dumps([[row[0] for row in rows], [row[1] for row in rows]]))"
    )
    return _in_a_process(script, place)


def _in_a_process(script: str, place: Path) -> list[tuple[int, str | None]]:
    done = subprocess.run(
        [sys.executable, "-c", script, str(place)], capture_output=True, check=True, text=True
    )
    offsets, days = json.loads(done.stdout.splitlines()[-1])
    return list(zip(offsets, days, strict=True))


def _in_pieces(place: Path) -> None:
    """As for large tables. Without the entries, so that readers have nothing but the checkpoint."""
    storage = TableStorage(LakeSettings(root=str(place.parent)), place.name)
    make_next_checkpoint(storage, time.time_ns() // 1_000_000)
    for entry in sorted((place / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()


@pytest.mark.parametrize("make_checkpoint", [checkpoint, _in_pieces])
@pytest.mark.parametrize("reader", [_by_deltalake, _by_polars, _by_duckdb])
def test_independent_readers_read_what_we_commit(
    tmp_path: Path, reader: Any, make_checkpoint: Any
) -> None:
    """With entries alone, and with a checkpoint that deltalake or we make of them."""
    table = _table(tmp_path)
    _carry(table)
    assert reader(tmp_path / "orders") == _expected(len(DAYS))
    make_checkpoint(tmp_path / "orders")
    _carry(table, len(DAYS))
    assert reader(tmp_path / "orders") == _expected(2 * len(DAYS))


def test_statistics_of_our_entries_skip_files(tmp_path: Path) -> None:
    """A reader with a filter opens only the files that may have such rows."""
    _carry(_table(tmp_path))
    dataset = DeltaTable(tmp_path / "orders").to_pyarrow_dataset()
    wanted = list(dataset.get_fragments(filter=pyarrow.dataset.field("offset") == 3))
    assert len(wanted) == 1


def test_an_entry_names_its_batch(tmp_path: Path) -> None:
    """Whoever looks for a commit of ours finds it by its key, with the offsets that it carried."""
    _carry(_table(tmp_path))
    infos = [one["commitInfo"] for one in _actions(tmp_path, "orders") if "commitInfo" in one]
    assert [info[BATCH_KEY] for info in infos] == [f"b{one}" for one in range(len(DAYS))]
    assert [info[RANGES_KEY]["g/id/0"][1] for info in infos] == list(range(1, len(DAYS) + 1))
    assert {info["operation"] for info in infos} == {"WRITE"}


@pytest.mark.parametrize("feature", ["inCommitTimestamp", "rowTracking"])
def test_a_rule_that_comes_during_a_commit_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feature: str
) -> None:
    """Another tool has the version and asks more of writers: the commit is not put after it."""
    table = _table(tmp_path)
    _carry(table)
    log = tmp_path / "orders" / "_delta_log"
    once = iter([True])

    def beaten(put: Any) -> Any:
        if next(once, False):
            protocol = {
                "minReaderVersion": 1,
                "minWriterVersion": 7,
                "writerFeatures": [feature],
            }
            entry = log / f"{len(DAYS) + 1:020d}.json"
            entry.write_text(json.dumps({"protocol": protocol}) + "\n", encoding="utf-8")
        return put()

    disturb_commits(monkeypatch, beaten)
    with pytest.raises(TableNotServedError, match=feature):
        _carry(table, len(DAYS))
    assert len(list(log.glob("*.json"))) == len(DAYS) + 2


def test_a_table_of_a_later_protocol_is_refused(tmp_path: Path) -> None:
    """Nobody knows what it will ask of writers."""
    table = _table(tmp_path)
    _carry(table)
    entry = tmp_path / "orders" / "_delta_log" / f"{len(DAYS) + 1:020d}.json"
    later = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 8}}
    entry.write_text(json.dumps(later), encoding="utf-8")
    with pytest.raises(TableNotServedError, match="writer version 8"):
        _carry(table, len(DAYS))
