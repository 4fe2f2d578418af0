"""What goes wrong with one table's upkeep stays with it; real Delta tables, no Spark."""

import contextlib
import errno
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from kit.lake.commit_ways import WAYS, commit_by, disturb_commits
from penstock.model import TopicPartition
from penstock.pipeline import LakeRefusedError, compaction, upkeep
from penstock.pipeline.join_plan import JoinRules
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.upkeep import UpkeepReport, keep_up, remove_orphans_of
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("value", "binary"), ("kind", "string"))
        ],
    }
)
_numbers = itertools.count(1)


class _Panic(BaseException):
    """What native code raises when it panics: no Exception."""


def _lake(root: Path) -> LakeSettings:
    return LakeSettings(root=str(root), group="g", compression="uncompressed")


def _add(table: LakeTable, kind: str | None = None, size_bytes: int = 10) -> None:
    """A batch of one record. With a kind, the table is partitioned by it."""
    stored = table.next_offsets(["g/id/0"])["g/id/0"]
    table.open_for(SCHEMA, () if kind is None else ["kind"])
    folder = f"data/g/1-1/{next(_numbers)}.id.0.{'new' if stored is None else stored}"
    place = Path(table.storage.uri) / folder / "topic-id"
    columns: dict[str, Any] = {"value": [os.urandom(size_bytes)]}
    if kind is None:
        columns["kind"] = ["all"]
    else:
        # As Spark names such a folder.
        place /= f"kind={quote(kind, safe=' +')}"
    place.mkdir(parents=True)
    pa.parquet.write_table(pa.table(columns), place / "part-0.parquet", compression="none")
    move = LedgerMove(TopicPartition(table.name, 0), "g/id/0", stored, (stored or 0) + 1)
    table.commit([move], written_files(table.storage, folder), batch=folder)


def _filled(root: Path, name: str, batches: int = 3) -> LakeTable:
    table = LakeTable(_lake(root), name)
    for _ in range(batches):
        _add(table)
    return table


def _rows(root: Path, name: str) -> int:
    return int(DeltaTable(root / name).to_pyarrow_table().num_rows)


def _orphan(root: Path, name: str) -> Path:
    """A file of consumer 1 that can never be committed."""
    path = root / name / "data/g/1-1/0.id.0.new/topic-id/part-0.parquet"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def _cut_log(root: Path) -> None:
    newest = max((root / "bad" / "_delta_log").glob("*.json"))
    newest.write_text(newest.read_text(encoding="utf-8")[:50], encoding="utf-8")


def _damaged_file(root: Path) -> None:
    min((root / "bad" / "data").rglob("*.parquet")).write_bytes(b"PAR1garbage")


def _not_ours(root: Path) -> None:
    (root / "bad" / "data" / "g").rename(root / "bad" / "data" / "h")


@pytest.mark.parametrize("named", [["bad", "good"], []], ids=["by name", "all"])
@pytest.mark.parametrize("harm", [_cut_log, _damaged_file, _not_ours])
def test_upkeep_goes_on_behind_a_table_that_fails(
    tmp_path: Path, harm: Callable[[Path], None], named: list[str]
) -> None:
    """The table behind it is compacted and searched; then the failing one is named."""
    for name in ("bad", "good"):
        _filled(tmp_path, name)
    harm(tmp_path)
    reports: list[UpkeepReport] = []
    # Without names, a table that is not ours is none of our business.
    is_told = bool(named) or harm is not _not_ours
    told = pytest.raises(LakeRefusedError, match=r"\AThe table bad could not[^\n]*\Z")
    with told if is_told else contextlib.nullcontext():
        reports.extend(keep_up(_lake(tmp_path), named))
    assert [(one.table, one.files_after) for one in reports] == [("good", 1)]


def test_a_consumer_leaves_a_table_alone_that_its_group_has_not_written_yet(tmp_path: Path) -> None:
    """Another group may write it, and no record of ours has come: that is no failure."""
    for name in ("bad", "good"):
        _filled(tmp_path, name)
    _not_ours(tmp_path)
    reports = keep_up(_lake(tmp_path), ["bad", "good"], skips_others=True)
    assert [one.table for one in reports] == ["good"]


def test_a_lake_that_cannot_be_listed_is_an_error_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of another kind would end the consumer that asked."""

    def away(*_: Any) -> Any:
        raise OSError("no answer")

    monkeypatch.setattr(upkeep, "table_names", away)
    with pytest.raises(LakeRefusedError, match="no answer"):
        list(keep_up(_lake(tmp_path)))
    with pytest.raises(LakeRefusedError, match="no answer"):
        remove_orphans_of(_lake(tmp_path), 1)


def test_a_folder_that_cannot_be_listed_concerns_its_table_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the group writes a table is asked of each table by itself."""
    for name in ("bad", "good"):
        _filled(tmp_path, name)
    orphan, right = _orphan(tmp_path, "good"), TableStorage.has_folder

    def forbidden(self: TableStorage, path: str) -> bool:
        if self.uri.endswith("bad"):
            raise PermissionError(path)
        return right(self, path)

    monkeypatch.setattr(TableStorage, "has_folder", forbidden)
    reports = keep_up(_lake(tmp_path))
    assert next(reports).orphans_removed == 1
    assert not orphan.exists()
    with pytest.raises(LakeRefusedError, match="table bad"):
        next(reports)
    orphan.parent.mkdir(parents=True)
    orphan.touch()
    assert remove_orphans_of(_lake(tmp_path), 1) == 1


@pytest.mark.parametrize("kind", [TypeError, _Panic, SystemExit])
def test_what_nobody_foresaw_stays_with_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """Also what is no Exception, in the upkeep and in the search at a start."""
    for name in ("bad", "good", "worse"):
        _filled(tmp_path, name)
    orphan = _orphan(tmp_path, "good")
    right = LakeTable.snapshot

    def raises(self: LakeTable, names: Any) -> Any:
        if self.name != "good":
            raise kind("nobody foresaw this")
        return right(self, names)

    monkeypatch.setattr(LakeTable, "snapshot", raises)
    with pytest.raises(LakeRefusedError, match=r"bad.*nobody foresaw this.*worse"):
        remove_orphans_of(_lake(tmp_path), 1)
    assert not orphan.exists()
    reports = keep_up(_lake(tmp_path))
    assert next(reports).table == "good"
    with pytest.raises(LakeRefusedError, match=r"bad.*nobody foresaw this.*worse"):
        next(reports)


def test_a_person_can_end_the_upkeep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt is no failure of a table."""
    _filled(tmp_path, "good")
    _orphan(tmp_path, "good")

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(upkeep, "remove_orphans", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(keep_up(_lake(tmp_path)))
    with pytest.raises(KeyboardInterrupt):
        remove_orphans_of(_lake(tmp_path), 1)


@pytest.mark.parametrize("with_some", [True, False], ids=["some", "none"])
def test_files_without_statistics_are_joined(tmp_path: Path, with_some: bool) -> None:
    """Another tool may leave them out: how many rows a file has is in its footer."""
    lake = _lake(tmp_path)
    table = LakeTable(lake, "orders")
    table.open_for(SCHEMA, ())
    if with_some:
        _add(table)
    (tmp_path / "orders" / "data" / "g").mkdir(parents=True, exist_ok=True)
    for number in range(2):
        path = tmp_path / "orders" / f"foreign-{number}.parquet"
        pa.parquet.write_table(pa.table({"value": [b"a", b"b"], "kind": ["x", "y"]}), path)
        add = {
            "path": path.name,
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
        }
        version = DeltaTable(tmp_path / "orders").version() + 1
        log = tmp_path / "orders" / "_delta_log" / f"{version:020d}.json"
        log.write_text(json.dumps({"add": add}), encoding="utf-8")
    assert _rows(tmp_path, "orders") == 4 + with_some
    (report,) = keep_up(lake)
    assert _rows(tmp_path, "orders") == 4 + with_some
    assert report.joins_refused == 0
    assert report.bytes_rewritten > 0
    assert {file.records for file in table.active()} <= {4, 1}, "files of one topic are joined"


def _fails_in_the_middle(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """The second file of a join cannot be copied."""
    rows, calls = compaction._rows, itertools.count(1)

    def copied(*given: Any) -> Any:
        if next(calls) == 2:
            raise error
        return rows(*given)

    monkeypatch.setattr(compaction, "_rows", copied)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), ValueError("odd"), _Panic("native")]
)
def test_a_join_that_fails_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Whatever went wrong while rows were copied, what was written so far is removed."""
    table = _filled(tmp_path, "orders")
    _fails_in_the_middle(monkeypatch, error)
    with pytest.raises(LakeRefusedError, match="The table orders could not be maintained"):
        list(keep_up(_lake(tmp_path)))
    assert table.storage.files_below("data/g/compaction") == []
    assert not (tmp_path / "orders/data/g/compaction").exists() or not any(
        (tmp_path / "orders/data/g/compaction").iterdir()
    )
    assert _rows(tmp_path, "orders") == 3


@pytest.mark.parametrize("way", WAYS)
def test_a_join_that_cannot_be_committed_leaves_no_file_on_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """On a disk, a commit that has failed does not come later, so its file is not needed."""
    table = _filled(tmp_path, "orders")

    def full(_: Callable[[], Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        commit_by(patched, way)
        disturb_commits(patched, full)
        with pytest.raises(LakeRefusedError, match="No space left"):
            list(keep_up(_lake(tmp_path)))
    assert table.storage.files_below("data/g/compaction") == []
    (report,) = keep_up(_lake(tmp_path))
    assert report.files_after == 1
    assert _rows(tmp_path, "orders") == 3


def test_a_join_whose_commit_may_still_arrive_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store may take a commit whose answer was lost, and then the file must be there."""
    table = _filled(tmp_path, "orders")

    def without_answer(self: LakeTable, *_: Any, **__: Any) -> int:
        self.storage.is_local = False
        raise LakeRefusedError("no answer")

    monkeypatch.setattr(LakeTable, "commit", without_answer)
    with pytest.raises(LakeRefusedError, match="no answer"):
        compaction.compact(table, _lake(tmp_path), JoinRules(2**27, 0, 0, finishes_all=True))
    assert len(list((tmp_path / "orders/data/g/compaction").rglob("*.parquet"))) == 1


def test_a_compaction_without_space_gives_it_back(small_disk: Path) -> None:
    """Files that do not fit twice on the disk cannot be joined, and consumers go on writing."""
    lake = _lake(small_disk)
    table = LakeTable(lake, "orders")
    for _ in range(10):
        _add(table, size_bytes=200_000)
    state = os.statvfs(small_disk)
    before = state.f_bavail * state.f_frsize
    assert before > 600_000
    for _ in range(3):
        with pytest.raises(LakeRefusedError):
            list(keep_up(lake))
    state = os.statvfs(small_disk)
    # A failed upkeep adds some kilobytes to the log, such as a checkpoint.
    assert state.f_bavail * state.f_frsize > before - 100_000
    _add(table, size_bytes=400_000)
    assert _rows(small_disk, "orders") == 11


def _no_vacuum(*_: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["join", "vacuum"])
def test_orphans_are_removed_though_an_earlier_step_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A damaged file or a full disk does not keep a table from giving space back."""
    _filled(tmp_path, "bad")
    if step == "join":
        _damaged_file(tmp_path)
    else:
        monkeypatch.setattr(LakeTable, "vacuum", _no_vacuum)
    orphan = _orphan(tmp_path, "bad")
    with pytest.raises(LakeRefusedError, match="bad"):
        list(keep_up(_lake(tmp_path)))
    assert not orphan.exists()


KINDS = ["a b", "a:b", "50%", "ü", "x%3Ay", "a+b", "a#b", "a?b"]


def test_replaced_files_with_escaped_names_stay_for_the_retention(tmp_path: Path) -> None:
    """A reader of the version before a compaction still finds every file."""
    table = LakeTable(_lake(tmp_path), "orders")
    for kind in KINDS * 2:
        _add(table, kind)
    version = DeltaTable(tmp_path / "orders").version()
    (report,) = keep_up(_lake(tmp_path))
    assert (report.files_after, report.orphans_removed) == (len(KINDS), 0)
    for at in (None, version):
        rows = DeltaTable(tmp_path / "orders", version=at).to_pyarrow_table()
        assert sorted(rows["kind"].to_pylist()) == sorted(KINDS * 2)


@pytest.mark.parametrize(
    ("said", "left"), [({}, 1), ({"delta.enableExpiredLogCleanup": "false"}, 6)]
)
def test_a_table_that_keeps_its_log_keeps_it(
    tmp_path: Path, said: Mapping[str, str], left: int
) -> None:
    """Log entries whose time is over are removed only where the table allows it."""
    write_deltalake(
        tmp_path / "orders",
        pa.table({"n": [0]}),
        configuration={"delta.logRetentionDuration": "interval 1 days", **said},
    )
    for number in range(5):
        write_deltalake(tmp_path / "orders", pa.table({"n": [number]}), mode="append")
    log = tmp_path / "orders" / "_delta_log"
    long_ago_s = time.time() - 5 * 86_400
    for entry in log.glob("*.json"):
        os.utime(entry, (long_ago_s, long_ago_s))
    LakeTable(_lake(tmp_path), "orders").vacuum()
    assert len(list(log.glob("*.json"))) == left
