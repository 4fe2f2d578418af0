"""The log of a table in an object store, read and written without deltalake; a real S3 server."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kit.lake.racing_writer import SCHEMA
from kit.lake.s3_server import BUCKET, S3Server, s3_for_tests
from penstock.model import TopicPartition
from penstock.pipeline import StaleWriterError
from penstock.pipeline.checkpoints import CheckpointMaker
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.log_entries import entry_path
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_with_files import TableWithFiles
from penstock.settings.sections import LakeSettings


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_for_tests(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def lake(s3: S3Server, tmp_path: Path) -> LakeSettings:
    place = f"s3://{BUCKET}/{tmp_path.name}"
    return LakeSettings(root=place, group="g", storage_options=s3.storage_options)


def _opened(lake: LakeSettings) -> LakeTable:
    table = LakeTable(lake, "orders")
    table.open_for(SCHEMA, ())
    return table


def _move(table: LakeTable, partition: int = 0) -> bool:
    """Move an entry by ten from where it is; False if another writer was quicker."""
    name = f"g/id/{partition}"
    at = table.next_offsets([name])[name]
    move = LedgerMove(TopicPartition("orders", partition), name, at, (at or 0) + 10)
    try:
        table.commit([move], [], batch=f"{id(table)}-{at}-{partition}")
    except StaleWriterError:
        return False
    return True


def test_a_table_in_an_object_store_needs_no_list_of_files(
    lake: LakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after checkpoints, after commits of others, and at the first look."""
    table, other = _opened(lake), _opened(lake)

    def opened(_: Any) -> None:
        raise AssertionError("opened with its files")

    monkeypatch.setattr(TableWithFiles, "newest", opened)
    assert all([_move(table), _move(other), _move(table, 1), _move(other)])
    maker = CheckpointMaker(lake)
    assert maker._run_child(table.storage) is None
    assert _move(table)
    for look in (table, other, LakeTable(lake, "orders")):
        assert look.next_offsets(["g/id/0", "g/id/1"]) == {"g/id/0": 40, "g/id/1": 10}
    stored = DeltaTable(f"{lake.root}/orders", storage_options=lake.storage_options)
    assert stored.transaction_version("g/id/0") == 40


def test_a_table_that_was_removed_and_made_again_is_read_anew(lake: LakeSettings) -> None:
    """Nothing of the old ledger is left."""
    table = _opened(lake)
    assert _move(table)
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 10}
    names = table.storage.file_names("_delta_log")
    table.storage.delete_files(f"_delta_log/{name}" for name in names)
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": None}
    assert not table.exists()
    assert _move(_opened(lake), 1)
    assert table.next_offsets(["g/id/0", "g/id/1"]) == {"g/id/0": None, "g/id/1": 10}


def test_a_table_made_again_in_the_same_second_is_read_anew(lake: LakeSettings) -> None:
    """Its entry has the length and, for the store, the time of the old one, and another tag."""

    def made(end: int) -> tuple[LakeTable, int]:
        table = _opened(lake)
        move = LedgerMove(TopicPartition("orders", 0), "g/id/0", None, end)
        table.commit([move], [], batch=f"batch-{end}")
        return table, table.storage.file_at(entry_path(1)).size_bytes

    table, length = made(10)
    names = table.storage.file_names("_delta_log")
    table.storage.delete_files(f"_delta_log/{name}" for name in names)
    assert made(20)[1] == length
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 20}


def test_writers_in_an_object_store_lose_nothing(lake: LakeSettings) -> None:
    """Three race for two entries, one of them through deltalake; every move is there once."""
    _opened(lake)
    barrier = threading.Barrier(3)

    def write(writer: int) -> list[int]:
        table = _opened(lake)
        if writer == 0:
            table._puts_entries = False
        barrier.wait()
        turns = [(writer + number) % 2 for number in range(8)]
        return [partition for partition in turns if _move(table, partition)]

    with ThreadPoolExecutor(3) as pool:
        made = [one for some in pool.map(write, range(3)) for one in some]
    assert made
    stored = DeltaTable(f"{lake.root}/orders", storage_options=lake.storage_options)
    for partition in (0, 1):
        moved = stored.transaction_version(f"g/id/{partition}") or 0
        assert moved == 10 * made.count(partition)


def _asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests are made at once, from now on."""
    asked: list[int] = []
    right = TableStorage.for_each

    def counted(self: TableStorage, function: Any, some: Any) -> Any:
        wanted = list(some)
        asked.append(len(wanted))
        return right(self, function, wanted)

    monkeypatch.setattr(TableStorage, "for_each", counted)
    return asked


def test_many_new_entries_are_asked_for_side_by_side(
    lake: LakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The more there were, the more at once, up to eight: one new entry costs two in vain."""
    table, other = _opened(lake), _opened(lake)
    for _ in range(20):
        assert _move(other)
    asked = _asked(monkeypatch)
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 200}
    assert asked == [1, 2, 4, 8, 8]
    assert table.versions()[0] == 20
    assert _move(other)
    asked.clear()
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 210}
    assert asked == [1, 2]


@pytest.mark.parametrize(
    ("expected", "requests"),
    [(12, [8, 4, 1]), (10, [8, 2, 1, 2]), (3, [3, 1, 2, 4, 8]), (10**9, [8, 8]), (0, [1, 2, 4, 8])],
)
def test_entries_that_are_expected_are_asked_for_at_once(
    lake: LakeSettings, monkeypatch: pytest.MonkeyPatch, expected: int, requests: list[int]
) -> None:
    """And then one more. Whatever is expected, the state is that of all entries."""
    table, other = _opened(lake), _opened(lake)
    for _ in range(12):
        assert _move(other)
    asked = _asked(monkeypatch)
    table._log.expect(expected)
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 120}
    assert asked == requests
    assert table.versions()[0] == 12


def test_an_entry_that_was_put_is_looked_after_side_by_side(
    lake: LakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its predecessor and the newest checkpoint, once each."""
    table = _opened(lake)
    assert _move(table)
    before = table.next_offsets(["g/id/0"])["g/id/0"]
    asked = _asked(monkeypatch)
    move = LedgerMove(TopicPartition("orders", 0), "g/id/0", before, 20)
    table.commit([move], [], batch="b")
    assert asked == [1, 2]
