"""Checkpoints that are made piece by piece in an object store; a real S3 server."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from kit.lake.racing_writer import SCHEMA
from kit.lake.s3_server import BUCKET, S3Server, s3_for_tests
from penstock.model import TopicPartition
from penstock.pipeline import checkpoints, make_checkpoint, stream_checkpoint
from penstock.pipeline.checkpoints import CheckpointMaker
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.log_entries import entry_path
from penstock.pipeline.log_replay import replay
from penstock.settings.sections import LakeSettings


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_for_tests(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def lake(s3: S3Server, tmp_path: Path) -> LakeSettings:
    place = f"s3://{BUCKET}/{tmp_path.name}"
    return LakeSettings(root=place, group="g", storage_options=s3.storage_options)


def _moved(lake: LakeSettings, moves: int) -> LakeTable:
    table = LakeTable(lake, "orders")
    table.open_for(SCHEMA, ())
    for number in range(moves):
        expected = 10 * number if number else None
        move = LedgerMove(TopicPartition("orders", 0), "g/id/0", expected, 10 * (number + 1))
        table.commit([move], [], batch=f"{number}-{time.time_ns()}")
    return table


def test_the_child_makes_one(lake: LakeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has nothing but the checkpoint reads on from it; the hint is there, and nothing else."""
    table = _moved(lake, 4)
    monkeypatch.setattr(
        checkpoints, "hinted_rows", lambda _: make_checkpoint.ROWS_FOR_DELTALAKE_MAX + 1
    )
    assert CheckpointMaker(lake)._run_child(table.storage) is None
    table.storage.delete_files(map(entry_path, range(4)))
    assert table.storage.file_names("_delta_log") == [
        f"{4:020d}.checkpoint.parquet",
        f"{4:020d}.json",
        "_last_checkpoint",
    ]
    with table.storage.open_file(f"_delta_log/{4:020d}.checkpoint.parquet") as file:
        maker = pyarrow.parquet.read_metadata(file).created_by
    assert maker.startswith("parquet-cpp"), "it is not deltalake's"
    assert LakeTable(lake, "orders").next_offsets(["g/id/0"]) == {"g/id/0": 40}
    stored = DeltaTable(f"{lake.root}/orders", storage_options=lake.storage_options)
    assert stored.transaction_version("g/id/0") == 40


def test_a_table_that_was_made_again_gets_none_of_the_old_one(lake: LakeSettings) -> None:
    """The object is given up before it has its name."""
    table = _moved(lake, 3)
    found = replay(table.storage)
    names = table.storage.file_names("_delta_log")
    table.storage.delete_files(f"_delta_log/{name}" for name in names)
    again = _moved(lake, 3)
    with pytest.raises(stream_checkpoint.LogReplacedError):
        stream_checkpoint.write_checkpoint(found, time.time_ns() // 1_000_000)
    names = again.storage.file_names("_delta_log")
    assert names == [f"{version:020d}.json" for version in range(4)]
