"""A table in an object store that is silent, slow or loses its answers; a real S3 server."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from kit.lake.faulty_store import (
    Fault,
    FaultyStore,
    every_request,
    faulty_store,
    puts_an_entry,
)
from kit.lake.racing_writer import SCHEMA
from kit.lake.s3_server import BUCKET, S3Server, s3_for_tests
from penstock.model import TopicPartition
from penstock.pipeline import StaleWriterError
from penstock.pipeline.failures import LakeAwayError
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.table_with_files import TableWithFiles
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

# Short, so that a test of a silent store is short.
LIMITS = {"timeout": "500ms", "connect_timeout": "500ms"}
TICK_S = 0.02
NAME = "g/id/0"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_for_tests(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def between(s3: S3Server) -> Iterator[FaultyStore]:
    with faulty_store(s3) as store:
        yield store


@pytest.fixture
def lake(between: FaultyStore, tmp_path: Path) -> LakeSettings:
    options = {**between.behind.storage_options, **LIMITS}
    return LakeSettings(root=f"s3://{BUCKET}/{tmp_path.name}", group="g", storage_options=options)


def _opened(lake: LakeSettings, name: str = "orders") -> LakeTable:
    table = LakeTable(lake, name)
    table.open_for(SCHEMA, ())
    return table


class Batch:
    """One batch of ten rows, written and not committed."""

    def __init__(self, table: LakeTable) -> None:
        self.table = table
        at = table.next_offsets([NAME])[NAME]
        start = at or 0
        self.folder = f"data/g/1-1/1.id.0.{'new' if at is None else at}"
        rows = pa.table({"partition": [0] * 10, "offset": range(start, start + 10)})
        with table.storage.create_file(f"{self.folder}/part-0.parquet") as stream:
            pa.parquet.write_table(rows, stream)
        self.files = written_files(table.storage, self.folder)
        self.move = LedgerMove(TopicPartition("orders", 0), NAME, at, start + 10)

    def commit(self) -> int:
        return self.table.commit([self.move], self.files, batch=self.folder)


def _require_exact(s3: S3Server, lake: LakeSettings, rows: int) -> None:
    """By a reader that shares nothing with us and does not go through the proxy."""
    stored = DeltaTable(f"{lake.root}/orders", storage_options=s3.storage_options)
    offsets = stored.to_pyarrow_table().column("offset").to_pylist()
    assert sorted(offsets) == list(range(rows))
    assert stored.transaction_version(NAME) == rows


def test_a_silent_store_holds_only_the_threads_that_ask(
    between: FaultyStore, lake: LakeSettings
) -> None:
    """The process lives meanwhile, and everyone who asked is told that the lake is away."""
    held, batch = _opened(lake), Batch(_opened(lake))
    held.next_offsets([NAME])
    writing = held.storage.create_file("data/large")
    between.harm(Fault.SILENCE)
    asked: list[Callable[[], Any]] = [
        lambda: held.next_offsets([NAME]),
        lambda: LakeTable(lake, "orders").exists(),
        batch.commit,
        lambda: _opened(lake, "another"),
        lambda: held.storage.files_below("data"),
        writing.finish,
        lambda: TableWithFiles(held.storage).newest(),
    ]
    is_over = threading.Event()
    ticks: list[int] = []

    def tick() -> None:
        while not is_over.wait(TICK_S):
            ticks.append(1)

    ticking = threading.Thread(target=tick)
    ticking.start()
    with ThreadPoolExecutor(len(asked)) as pool:
        refused = [one.exception() for one in [pool.submit(one) for one in asked]]
    is_over.set()
    ticking.join()
    # Each waited for half a second at least, four times. A held interpreter makes no tick at all.
    assert len(ticks) > 20
    assert all(isinstance(one, Exception) for one in refused)
    assert all(isinstance(one, LakeAwayError) for one in refused[:4]), refused
    between.heal()
    assert held.next_offsets([NAME]) == {NAME: None}


def test_a_commit_whose_answer_is_lost_is_made_once(
    between: FaultyStore, lake: LakeSettings, s3: S3Server
) -> None:
    """The client asks again and hears that the version is taken: by this very batch."""
    batch = Batch(_opened(lake))
    between.harm(Fault.LOST_ANSWER, puts_an_entry, times=1)
    assert batch.commit() == 1
    assert len([one for one in between.seen if puts_an_entry(*one) and "01.json" in one[1]]) >= 1
    between.until_met()
    assert Batch(_opened(lake)).commit() == 2
    _require_exact(s3, lake, 20)


def test_a_commit_that_arrives_late_is_made_once(
    between: FaultyStore, lake: LakeSettings, s3: S3Server
) -> None:
    """The client gives up and tries again, and then the first request arrives after all."""
    batch = Batch(_opened(lake))
    between.harm(Fault.LATE_REQUEST, puts_an_entry, times=1, wait_s=0.5)
    assert batch.commit() == 1
    between.until_met()
    assert Batch(_opened(lake)).commit() == 2
    _require_exact(s3, lake, 20)


def test_a_commit_given_up_may_still_have_been_made(
    between: FaultyStore, lake: LakeSettings, s3: S3Server
) -> None:
    """Then the ledger has moved, the batch cannot be made again, and its file is there."""
    batch = Batch(_opened(lake))
    puts: list[str] = []

    def follows_the_put(method: str, path: str) -> bool:
        if puts_an_entry(method, path):
            puts.append(path)
            return len(puts) > 1
        return bool(puts)

    # The entry arrives, and then nothing is answered any more, also not what is in the log.
    between.harm(Fault.SILENCE, follows_the_put)
    with pytest.raises(LakeAwayError):
        batch.commit()
    between.heal()
    with pytest.raises(StaleWriterError):
        batch.commit()
    _require_exact(s3, lake, 10)


@pytest.mark.parametrize("fault", [Fault.SILENCE, Fault.CLOSED])
def test_a_commit_is_made_when_the_store_is_back(
    between: FaultyStore, lake: LakeSettings, s3: S3Server, fault: Fault
) -> None:
    """Nothing of it is in the table before."""
    batch = Batch(_opened(lake))
    between.harm(fault, puts_an_entry)
    with pytest.raises(LakeAwayError):
        batch.commit()
    between.harm(fault, every_request)
    with pytest.raises(LakeAwayError):
        batch.table.next_offsets([NAME])
    between.heal()
    assert batch.table.next_offsets([NAME]) == {NAME: None}
    assert batch.commit() == 1
    _require_exact(s3, lake, 10)


def test_a_slow_store_loses_nothing(between: FaultyStore, lake: LakeSettings, s3: S3Server) -> None:
    """Requests that take a while are no failures."""
    table = _opened(lake)
    between.harm(Fault.SLOW, wait_s=0.1)
    for number in range(3):
        assert Batch(table).commit() == number + 1
    between.heal()
    _require_exact(s3, lake, 30)
