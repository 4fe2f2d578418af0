"""Tables are kept in shape by a child process, on real Delta tables that deltalake reads back."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake
from obstore.store import MemoryStore

from penstock.model import TopicPartition
from penstock.object_store import client
from penstock.object_store.client import ObjectStore
from penstock.object_store.limits import ObjectStoreError
from penstock.pipeline import LakeRefusedError, table_keeper
from penstock.pipeline.compaction import totals_of
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.log_entries import entry_path
from penstock.pipeline.table_keeper import TableKeeper
from penstock.pipeline.upkeep import UpkeepReport, keep_up
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}},'
    '{"name":"key","type":"long","nullable":true,"metadata":{}}]}'
)
PATIENCE_S = 60.0
_numbers = itertools.count(1)


def _lake(root: Path, **options: Any) -> LakeSettings:
    return LakeSettings(root=str(root), group="g", **options)


def _commit(lake: LakeSettings, files: int, name: str = "orders", *, ago_s: int = 0) -> LakeTable:
    """So many commits of one small file each."""
    table = LakeTable(lake, name)
    table.open_for(SCHEMA, ())
    for _ in range(files):
        start = table.next_offsets(["g/id/0"])["g/id/0"]
        folder = f"data/g/1-1/{next(_numbers)}.id.0.{'new' if start is None else start}"
        path = Path(table.storage.uri) / folder / "topic-id" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        offsets = [start or 0, (start or 0) + 1]
        rows = pa.table({"offset": offsets, "key": [-one for one in offsets]})
        pa.parquet.write_table(rows, path)
        written_s = time.time() - ago_s
        os.utime(path, (written_s, written_s))
        move = LedgerMove(TopicPartition(name, 0), "g/id/0", start, (start or 0) + 2)
        table.commit([move], written_files(table.storage, folder), batch=folder)
    return table


def _offsets(root: Path, name: str = "orders") -> list[int]:
    return sorted(DeltaTable(root / name).to_pyarrow_table()["offset"].to_pylist())


@pytest.fixture
def keepers() -> Iterator[Callable[..., TableKeeper]]:
    made: list[TableKeeper] = []

    def make(lake: LakeSettings, **options: Any) -> TableKeeper:
        made.append(TableKeeper(lake, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def _noted(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]) -> list[Any]:
    """What is asked of children from now on."""
    asked: list[Any] = []

    def noted(self: TableKeeper, request: Any) -> Any:
        asked.append(request)
        return run(self, request)

    monkeypatch.setattr(TableKeeper, "_run_child", noted)
    return asked


def test_a_child_joins_small_files_and_says_what_it_cost(
    tmp_path: Path, keepers: Callable[..., TableKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then there is nothing to do, and no child is started, until there is a new version."""
    lake = _lake(tmp_path)
    table = _commit(lake, 20)
    keeper = keepers(lake)
    done = keeper.keep(["absent", "orders"])
    assert done.failure is None
    (report,) = done.reports
    assert (report.files_before, report.files_after) == (20, 1)
    assert 0 < done.processor_s < PATIENCE_S
    assert not done.has_more
    assert _offsets(tmp_path) == list(range(40))
    totals = totals_of(table, "g")
    assert (totals.joins, totals.files) == (1, 20)
    assert totals.rewritten_bytes == report.bytes_rewritten
    assert 0 < totals.processor_ms <= done.processor_s * 1000
    children = _noted(monkeypatch, TableKeeper._run_child)
    assert keeper.keep(["orders"]).reports == ()
    assert not children
    _commit(lake, 1)
    assert len(keeper.keep(["orders"]).reports) == 1
    assert [one["tables"] for one in children] == [["orders"]]


class Store:
    """An object store in memory, and what it was asked for; or it does not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.holds = MemoryStore()
        self.asked: list[str] = []
        self.is_silent = False
        look_at = ObjectStore.look_at

        def noted(store: ObjectStore, path: str) -> Any:
            self.asked.append(store._key(path))
            if self.is_silent:
                raise ObjectStoreError("no answer")
            return look_at(store, path)

        monkeypatch.setattr(client, "_client", lambda *_: self.holds)
        monkeypatch.setattr(ObjectStore, "look_at", noted)

    def commit(self, name: str, version: int) -> None:
        self.holds.put(f"lake/{name}/{entry_path(version)}", b"{}")


def test_a_quiet_table_in_an_object_store_costs_one_request_and_no_child(
    keepers: Callable[..., TableKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child opened every table with its list of files each time, and swept it, too."""
    now_s, store = [0.0], Store(monkeypatch)
    lake = LakeSettings(root="s3://bucket/lake", group="g", sweep_period="1m")
    names = [f"t{number}" for number in range(20)]
    keeper = keepers(lake, clock=lambda: now_s[0])

    def child(_: TableKeeper, request: Any) -> Any:
        report = asdict(UpkeepReport("", 1, 1, 0, 0, 0))
        given = {"version": 4, "due_ms": None}
        return [{"report": {**report, "table": one}, **given} for one in request["tables"]], None

    children = _noted(monkeypatch, child)
    keeper.keep(names)
    assert (children[0]["tables"], children[0]["sweeps"]) == (sorted(names), names)
    assert store.asked == []
    now_s[0] = 70.0  # a sweep is due for those that have changed
    assert keeper.keep(names) == table_keeper.TablesKept()
    assert sorted(store.asked) == sorted(f"lake/{one}/{entry_path(5)}" for one in names)
    store.commit("t7", 5)
    keeper.keep(names)
    assert (children[1]["tables"], children[1]["sweeps"]) == (["t7"], ["t7"])
    now_s[0] = 70.0 * table_keeper.QUIET_SWEEPS
    keeper.keep(names)
    assert children[2]["sweeps"] == names
    assert len(children) == 3


def test_a_store_that_does_not_answer_is_left_to_a_child(
    keepers: Callable[..., TableKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is wrong. Not every table waits for an answer before."""
    store = Store(monkeypatch)
    keeper = keepers(LakeSettings(root="s3://bucket/lake", group="g"))
    names = [f"t{number:03}" for number in range(200)]
    keeper._swept = {name: (time.monotonic(), 4) for name in names}
    keeper._known = {name: table_keeper._Known(4, None) for name in names}
    store.is_silent = True
    children = _noted(monkeypatch, lambda *_: ([], "did not end well"))
    assert keeper.keep(names).failure is not None
    assert children[0]["tables"] == names
    assert len(store.asked) == 1


def test_a_folder_that_becomes_quiet_is_due_without_a_new_version(
    tmp_path: Path, keepers: Callable[..., TableKeeper]
) -> None:
    """The child names the time; then all small files of the folder become one."""
    lake = _lake(tmp_path)
    table = _commit(lake, 3, ago_s=3_000)
    keeper = keepers(lake)
    (report,) = keeper.keep(["orders"]).reports
    assert report.files_after == 3, "three files are not worth a join yet"
    newest_ms = max(file.modified_at_ms for file in table.active())
    known = keeper._known["orders"]
    assert known.due_unix_ms == newest_ms + 3_600_000
    assert keeper.keep(["orders"]).reports == ()
    keeper._known["orders"] = table_keeper._Known(known.version, newest_ms)
    keeper._lake = _lake(tmp_path, quiet_after="40m")
    (report,) = keeper.keep(["orders"]).reports
    assert report.files_after == 1
    (left,) = table.active()
    assert "/finished-" in left.path
    assert _offsets(tmp_path) == list(range(6))


def test_a_child_ends_when_it_has_taken_its_time_and_the_next_goes_on(
    tmp_path: Path, keepers: Callable[..., TableKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table that it did not reach comes first."""
    lake = _lake(tmp_path)
    _commit(lake, 20, "a")
    _commit(lake, 20, "b")
    keeper = keepers(lake)
    monkeypatch.setattr(table_keeper, "PROCESSOR_S_MAX", 0.0)
    done = keeper.keep(["a", "b"])
    assert (done.reports, done.has_more) == ([], True)
    keeper._unseen = ["b"]
    asked = _noted(monkeypatch, lambda *_: ([], None))
    keeper.keep(["a", "b"])
    assert asked[0]["tables"] == ["b", "a"]


def test_what_fails_is_named_and_others_are_kept(
    tmp_path: Path, keepers: Callable[..., TableKeeper]
) -> None:
    """A file of one table is damaged."""
    lake = _lake(tmp_path)
    bad = _commit(lake, 20, "bad")
    _commit(lake, 20, "good")
    Path(bad.storage.uri, bad.active()[3].path).write_bytes(b"nonsense")
    done = keepers(lake).keep(["bad", "good"])
    assert [one.table for one in done.reports] == ["good"]
    assert done.failure is not None
    assert "The table bad could not be maintained: " in done.failure.message
    assert done.processor_s > 0


@pytest.mark.parametrize(
    ("call", "nothing"),
    [
        (lambda keeper: keeper.keep(["orders"]), table_keeper.TablesKept()),
        (lambda keeper: keeper.remove_orphans(1), 0),
    ],
    ids=["keep", "remove orphans"],
)
def test_the_end_of_a_consumer_ends_its_child(
    tmp_path: Path,
    keepers: Callable[..., TableKeeper],
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[TableKeeper], Any],
    nothing: Any,
) -> None:
    """At once, whatever it does; nobody waits, and no other child is started."""
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(table_keeper, "PROGRAM", "sleeps")
    keeper = keepers(_lake(tmp_path))
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(call(keeper)))
    thread.start()
    deadline = time.monotonic() + PATIENCE_S
    while keeper._child is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child = keeper._child
    keeper.close()
    thread.join(PATIENCE_S)
    assert child.returncode == -9
    assert answers == [nothing]
    assert call(keeper) == nothing


def test_a_child_that_is_killed_from_outside_is_a_failure(
    tmp_path: Path, keepers: Callable[..., TableKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel does it when memory is short. Its time counts as if it had worked.

    The line that it was writing is cut off, here behind an inner bracket.
    """
    (tmp_path / "dies.py").write_text(
        "import os, time\n"
        "os.write(1, b'{\"report\": {}')\n"
        "time.sleep(0.2)\n"
        "os.kill(os.getpid(), 9)\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(table_keeper, "PROGRAM", "dies")
    keeper = keepers(_lake(tmp_path))
    done = keeper.keep(["orders"])
    assert done.failure is not None
    assert "was ended by SIGKILL" in done.failure.message
    assert done.processor_s >= 0.2
    with pytest.raises(LakeRefusedError, match="was ended by SIGKILL"):
        keeper.remove_orphans(1)


def test_a_killed_join_leaves_an_orphan_that_a_sweep_removes(
    tmp_path: Path, keepers: Callable[..., TableKeeper]
) -> None:
    """Once another join has passed: until then the killed one might be paused."""
    lake = _lake(tmp_path)
    table = _commit(lake, 20)
    left = Path(table.storage.uri) / "data/g/compaction/7.compaction.0.new/topic-id/part-7.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half a file")
    (report,) = keepers(lake).keep(["orders"]).reports
    assert report.files_after == 1
    assert report.orphans_removed == 1
    assert not left.exists()
    assert not left.parent.parent.exists()


def test_a_table_that_another_tool_writes_is_left_alone(
    tmp_path: Path, keepers: Callable[..., TableKeeper]
) -> None:
    """It may compact the table, and deltalake would double rows; by hand files are joined."""
    lake = _lake(tmp_path)
    _commit(lake, 20)
    rows = pa.table({"offset": [40], "key": [-40]})
    write_deltalake(tmp_path / "orders", rows, mode="append")
    (report,) = keepers(lake).keep(["orders"]).reports
    assert (report.files_after, report.left_alone) == (21, "another tool has written files of it")
    (report,) = keep_up(lake)
    assert (report.files_after, report.left_alone) == (2, "")
    assert _offsets(tmp_path) == list(range(41))


def test_folders_whose_files_are_gone_are_removed(tmp_path: Path) -> None:
    """Not that of a batch which may still write: its ledger entry has not moved."""
    lake = _lake(tmp_path, removed_file_retention="0s")
    table = _commit(lake, 4)
    waiting = Path(table.storage.uri) / "data/g/1-1/999.id.0.8/topic-id"
    waiting.mkdir(parents=True)
    foreign = Path(table.storage.uri) / "data/g/1-1/notes"
    foreign.mkdir()
    (report,) = keep_up(lake)
    assert (report.files_after, report.files_vacuumed) == (1, 4)
    batches = sorted(one.name for one in (Path(table.storage.uri) / "data/g/1-1").iterdir())
    assert batches == ["999.id.0.8", "notes"]
    assert _offsets(tmp_path) == list(range(8))


def test_files_are_sorted_by_the_columns_of_the_settings(tmp_path: Path) -> None:
    """Within each file; readers skip row groups. Columns that are not there are passed over."""
    lake = _lake(tmp_path, tables={"orders": {"sort_by": ["later", "key"]}})
    table = _commit(lake, 4)
    (report,) = keep_up(lake)
    assert report.files_after == 1
    (file,) = table.active()
    stored = pa.parquet.read_table(Path(table.storage.uri) / file.path)
    assert stored["key"].to_pylist() == list(range(-7, 1))
    assert _offsets(tmp_path) == list(range(8))


def test_a_table_may_have_a_file_size_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its topics say so; other tables have the lake's."""
    lake = _lake(tmp_path, tables={"orders": {"file_size": "2MiB"}})
    assert (lake.file_size_of("orders"), lake.file_size_of("other")) == (2 * 2**20, 128 * 2**20)
    table = _commit(lake, 4)
    small = min(file.size_bytes for file in table.active())
    own = lake.tables["orders"].model_copy(update={"file_size": small})
    monkeypatch.setitem(lake.tables, "orders", own)
    (report,) = keep_up(lake)
    assert report.bytes_rewritten == 0, "each file is as large as that"


def test_small_row_groups_become_large_ones(tmp_path: Path) -> None:
    """A reader of a joined file does not meet every small file again."""
    table = _commit(_lake(tmp_path), 20)
    list(keep_up(_lake(tmp_path)))
    (file,) = table.active()
    footer = pa.parquet.read_metadata(Path(table.storage.uri) / file.path)
    assert (footer.num_rows, footer.num_row_groups) == (40, 1)
