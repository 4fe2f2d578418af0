"""Compaction beside foreign tools, on real Delta tables that deltalake reads back; no Spark."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from kit.lake.commit_ways import WAYS, commit_by
from kit.lake.deletion_vectors import delete_first_two_rows_by_vector
from penstock.model import TopicPartition
from penstock.pipeline import LakeRefusedError, compaction, lake_commit
from penstock.pipeline.join_plan import JoinRules
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.orphans import Provenance
from penstock.pipeline.table_files import KnownFiles, LogSnapshot
from penstock.pipeline.upkeep import keep_up, remove_orphans_of
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)
ROWS_PER_FILE = 5
# By what a commit sees that its files are still there: by entry, and by deltalake.
CHECKS = ("_require_untouched", "_require_active")
_numbers = itertools.count(1)


def _lake(root: Path, **options: Any) -> LakeSettings:
    return LakeSettings(root=str(root), **{"group": "g", "removed_file_retention": "0s", **options})


def _filled(lake: LakeSettings, files: int = 4, name: str = "orders") -> LakeTable:
    """A table of the group with so many small files, each committed by itself."""
    table = LakeTable(lake, name)
    table.open_for(SCHEMA, ())
    for number in range(files):
        start = number * ROWS_PER_FILE
        folder = f"data/{lake.group}/1-1/{next(_numbers)}.id.0.{start or 'new'}"
        path = Path(table.storage.uri) / folder / "topic-id" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        rows = pa.table({"offset": list(range(start, start + ROWS_PER_FILE))})
        pa.parquet.write_table(rows, path)
        move = LedgerMove(
            TopicPartition(name, 0), f"{lake.group}/id/0", start or None, start + ROWS_PER_FILE
        )
        table.commit([move], written_files(table.storage, folder), batch=folder)
    return table


def _all_of_it(lake: LakeSettings) -> JoinRules:
    return JoinRules(lake.file_size, now_ms=0, quiet_ms=0, finishes_all=True)


def _rows(root: Path, name: str = "orders") -> list[int]:
    table = DeltaTable(root / name)
    found = QueryBuilder().register("rows", table).execute("select * from rows").read_all()
    return sorted(pa.table(found)["offset"].to_pylist())


def _after_reading(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen once the files are rewritten and before they are committed."""
    join, once = compaction._join, iter([True])

    def joined(*given: Any) -> Any:
        written = join(*given)
        if next(once, False):
            act()
        return written

    monkeypatch.setattr(compaction, "_join", joined)


def _delete(root: Path) -> None:
    DeltaTable(root / "orders").delete("offset < 3")


def _optimize(root: Path) -> None:
    DeltaTable(root / "orders").optimize.compact()


def _after_check(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    checked = getattr(LakeTable, name)

    def check(self: LakeTable, *given: Any) -> None:
        checked(self, *given)
        if any(isinstance(one, list) and one for one in given):  # files are to be removed
            act()

    monkeypatch.setattr(LakeTable, name, check)


def a_foreign_change_is_kept(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: Callable[[Path], object],
    left: Any,
    moment: str,
) -> None:
    """The law that planted bugs break: rows are those that the other tool left, each once."""
    lake = _lake(root)
    table = _filled(lake)
    (root / "orders" / "data" / "h").mkdir()  # the other group writes this table, too
    if moment == "while_reading":
        _after_reading(monkeypatch, lambda: tool(root))
    else:
        once = iter([True])
        for name in CHECKS:
            _after_check(monkeypatch, name, lambda: next(once, False) and tool(root))
    compaction.compact(table, lake, _all_of_it(lake))
    assert _rows(root) == list(left)
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 20}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", ["while_reading", "before_commit"])
@pytest.mark.parametrize(
    ("tool", "left"),
    [
        (_delete, range(3, 20)),
        (_optimize, range(20)),
        (lambda root: list(keep_up(_lake(root, group="h"), ["orders"])), range(20)),
        (
            lambda root: DeltaTable(root / "orders").update(
                {"offset": "offset + 100"}, predicate="offset = 19"
            ),
            [*range(19), 119],
        ),
        (
            lambda root: write_deltalake(
                root / "orders", pa.table({"offset": [77]}), mode="overwrite"
            ),
            [77],
        ),
    ],
    ids=["delete", "optimize", "another-group", "update", "overwrite"],
)
def test_a_foreign_change_during_a_compaction_is_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: Callable[[Path], object],
    left: Any,
    moment: str,
    way: str,
) -> None:
    """No row is doubled, none comes back and no offset moves, whenever the other tool commits."""
    commit_by(monkeypatch, way)
    a_foreign_change_is_kept(tmp_path, monkeypatch, tool, left, moment)


def test_a_log_that_is_cleaned_up_during_a_compaction_does_not_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened to the files meanwhile is read from the list, then; rows stay, each once."""
    lake = _lake(tmp_path)
    table = _filled(lake)
    entries: list[Path] = []

    def cleaned_up() -> None:
        opened = DeltaTable(tmp_path / "orders")
        write_deltalake(tmp_path / "orders", pa.table({"offset": [77]}), mode="append")
        write_deltalake(tmp_path / "orders", pa.table({"offset": [78]}), mode="append")
        opened.update_incremental()
        opened.create_checkpoint()
        entries.extend(sorted((tmp_path / "orders/_delta_log").glob("*.json"))[:-1])
        for entry in entries:
            entry.unlink()

    _after_reading(monkeypatch, cleaned_up)
    done = compaction.compact(table, lake, _all_of_it(lake))
    assert len(entries) == 6
    assert (done.files_before, done.files_after, done.joins_refused) == (4, 1, 0)
    assert _rows(tmp_path) == [*range(20), 77, 78]


@pytest.mark.parametrize(
    "bug",
    [
        "replaced files are not looked for",
        "a commit that replaces files is rebased",
        "deletion vectors are ignored",
    ],
)
def test_planted_bugs_about_compaction_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    """Each bug doubles rows or brings deleted ones back, and the law fails."""
    if bug == "replaced files are not looked for":
        for name in CHECKS:
            monkeypatch.setattr(LakeTable, name, lambda *_: None)
        with pytest.raises(AssertionError):
            a_foreign_change_is_kept(tmp_path, monkeypatch, _delete, range(3, 20), "while_reading")
    elif bug == "a commit that replaces files is rebased":
        commit_by(monkeypatch, "deltalake")
        rebased = functools.partial(_rebased, CommitProperties)
        monkeypatch.setattr(lake_commit, "CommitProperties", rebased)
        with pytest.raises(AssertionError):
            a_foreign_change_is_kept(tmp_path, monkeypatch, _optimize, range(20), "before_commit")
    else:
        # By an entry of ours it would be seen all the same: a vector names its file anew.
        commit_by(monkeypatch, "deltalake")
        monkeypatch.setattr(lake_commit, "has_deletion_vectors", lambda _: False)
        with pytest.raises(AssertionError):
            a_vector_that_comes_meanwhile_is_kept(tmp_path, monkeypatch)


def _rebased(right: Callable[..., Any], **given: Any) -> Any:
    return right(**{**given, "max_commit_retries": None})


def test_a_refused_join_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a compaction wrote in vain is removed at once, and the report counts it."""
    lake = _lake(tmp_path)
    table = _filled(lake)
    _after_reading(monkeypatch, lambda: DeltaTable(tmp_path / "orders").delete("offset < 3"))
    done = compaction.compact(table, lake, _all_of_it(lake))
    assert (done.joins_refused, done.bytes_rewritten) == (1, 0)
    assert table.storage.files_below("data/g/compaction") == []


def test_an_append_during_a_compaction_does_not_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer that commits in between is no reason to drop the joined file."""
    lake = _lake(tmp_path)
    table = _filled(lake)
    more = pa.table({"offset": [20]})
    _after_reading(monkeypatch, lambda: write_deltalake(tmp_path / "orders", more, mode="append"))
    assert compaction.compact(table, lake, _all_of_it(lake)).bytes_rewritten > 0
    assert _rows(tmp_path) == list(range(21))
    assert len(DeltaTable(tmp_path / "orders").file_uris()) == 2


@pytest.mark.parametrize(
    ("compression", "codec"),
    [
        ("zstd", "ZSTD"),
        ("snappy", "SNAPPY"),
        ("lz4", "LZ4"),
        ("gzip", "GZIP"),
        ("uncompressed", "UNCOMPRESSED"),
    ],
)
def test_joined_files_are_compressed_as_the_settings_say(
    tmp_path: Path, compression: str, codec: str
) -> None:
    """`lake.compression` counts for files of consumers and of a compaction alike."""
    lake = _lake(tmp_path, compression=compression)
    table = _filled(lake)
    compaction.compact(table, lake, _all_of_it(lake))
    (joined,) = table.active()
    footer = pa.parquet.read_metadata(Path(table.storage.uri) / joined.path)
    assert footer.row_group(0).column(0).compression == codec


def test_rows_deleted_by_a_deletion_vector_stay_deleted(tmp_path: Path) -> None:
    """A table with deletion vectors is left alone, with the reason."""
    lake = _lake(tmp_path)
    _filled(lake)
    delete_first_two_rows_by_vector(tmp_path / "orders")
    assert _rows(tmp_path) == list(range(2, 20))
    (report,) = keep_up(lake)
    assert report.left_alone == "the table uses deletionVectors"
    assert _rows(tmp_path) == list(range(2, 20))


def a_vector_that_comes_meanwhile_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The law that a planted bug breaks: rows deleted while they are copied stay deleted."""
    lake = _lake(root)
    table = _filled(lake)
    _after_reading(monkeypatch, lambda: delete_first_two_rows_by_vector(root / "orders"))
    done = compaction.compact(table, lake, _all_of_it(lake))
    assert _rows(root) == list(range(2, 20))
    assert done.joins_refused == 1


def test_deletion_vectors_switched_on_during_a_compaction_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that got a deletion vector while it was read is not replaced."""
    a_vector_that_comes_meanwhile_is_kept(tmp_path, monkeypatch)


def test_foreign_tables_are_not_touched(tmp_path: Path) -> None:
    """Only tables that this group writes are maintained; a foreign one by name is refused."""
    lake = _lake(tmp_path)
    _filled(lake)
    for number in range(3):
        rows = pa.table({"offset": [number]})
        write_deltalake(tmp_path / "foreign", rows, mode="append")
    DeltaTable(tmp_path / "foreign").delete("offset = 0")
    before = sorted(path for path in (tmp_path / "foreign").rglob("*"))
    assert [report.table for report in keep_up(lake)] == ["orders"]
    with pytest.raises(LakeRefusedError, match="does not write the table foreign"):
        list(keep_up(lake, ["foreign"]))
    assert sorted(path for path in (tmp_path / "foreign").rglob("*")) == before


def test_the_tables_own_properties_win(tmp_path: Path) -> None:
    """Replaced files stay as long as the table says, and its file size is the one that is made."""
    table = _filled(_lake(tmp_path, removed_file_retention="1d"))
    kept = {"delta.targetFileSize": "2", "delta.deletedFileRetentionDuration": "interval 1 days"}
    DeltaTable(tmp_path / "orders").alter.set_table_properties(kept)
    (report,) = keep_up(_lake(tmp_path))
    assert (report.files_after, report.bytes_rewritten) == (4, 0), "each file is larger than that"
    DeltaTable(tmp_path / "orders").alter.set_table_properties({"delta.targetFileSize": "9999999"})
    (report,) = keep_up(_lake(tmp_path))
    assert (report.files_after, report.files_vacuumed) == (1, 0)
    assert len(table.storage.files_below("data")) == 5


def _uncommitted(table: LakeTable, batch: str, offsets: list[int]) -> Path:
    """A file that a batch of consumer 1 wrote and has not committed."""
    path = Path(table.storage.uri) / f"data/g/1-1/{batch}/topic-id/part-0.parquet"
    path.parent.mkdir(parents=True)
    pa.parquet.write_table(pa.table({"offset": offsets}), path)
    return path


def a_sweep_goes_by_the_ledger(root: Path) -> None:
    """The law that planted bugs break: a sweep takes what can never be committed, and no more."""
    lake = _lake(root)
    table = _filled(lake)
    _uncommitted(table, "999.id.0.20", [20, 21])
    assert remove_orphans_of(lake, 1) == 0
    folder = "data/g/1-1/999.id.0.20"
    move = LedgerMove(TopicPartition("orders", 0), "g/id/0", 20, 22)
    files = written_files(table.storage, folder)
    assert len(files) == 1, "the paused writer has lost its file"
    table.commit([move], files, batch=folder)
    assert _rows(root) == list(range(22)), "the paused writer woke up and committed"
    stale = _uncommitted(table, "998.id.0.15", [15])
    assert remove_orphans_of(lake, 2) == 0, "another consumer's files are not its business"
    assert remove_orphans_of(lake, 1) == 1
    assert not stale.exists()
    assert _rows(root) == list(range(22))


def test_files_of_an_earlier_incarnation_stay_while_it_may_commit(tmp_path: Path) -> None:
    """A start removes only what the ledger proves: an earlier incarnation may live elsewhere."""
    a_sweep_goes_by_the_ledger(tmp_path)


def _is_over_one_too_soon(self: Provenance, ledger: Mapping[str, int | None]) -> bool:
    return (ledger.get(self.application_id) or 0) >= (self.expected or 0)


def _knows_no_file(self: LakeTable, names: Iterable[str]) -> LogSnapshot:
    return LogSnapshot(self.next_offsets(names), KnownFiles())


@pytest.mark.parametrize(
    ("of", "name", "wrong"),
    [
        (Provenance, "is_over", lambda *_: True),
        (Provenance, "is_over", _is_over_one_too_soon),
        (LakeTable, "snapshot", _knows_no_file),
    ],
    ids=["an earlier incarnation is dead", "over one offset too soon", "committed files unknown"],
)
def test_planted_bugs_about_the_sweep_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: type, name: str, wrong: Any
) -> None:
    """Each bug takes files that are committed or can still be, and the law fails."""
    monkeypatch.setattr(of, name, wrong)
    with pytest.raises((AssertionError, FileNotFoundError)):
        a_sweep_goes_by_the_ledger(tmp_path)
