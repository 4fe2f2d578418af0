"""The check finds every kind of fault, and accepts gaps between offsets."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from penstock.verification import PartitionVerdict, VerificationResult
from penstock.verification.check import compare
from penstock.verification.delta_log import BrokenLogError, read_table
from penstock.verification.lake_offsets import Lake, NotVerifiableError, offsets_of_topic


def _offsets(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(
    ("kafka", "lake", "dead", "faults"),
    [
        ((0, 1, 4), (0, 1, 4), (), {}),
        ((0, 1, 4), (0, 4), (1,), {}),
        ((0, 1, 4), (0, 4), (), {"lost": 1, "first_lost": 1}),
        ((0, 1, 4), (0, 1, 1, 4), (), {"duplicated": 1}),
        ((0, 1, 4), (0, 1, 4), (1,), {"duplicated": 1}),
        ((0, 1, 4), (0, 1, 4, 5), (), {"out_of_place": 1}),
        ((0, 1, 4), (0, 1, 2, 4), (), {"out_of_place": 1}),
        ((0, 1, 4), (0, 1, 4), (7,), {}),
    ],
    ids=[
        "gaps are no fault",
        "a dead letter counts",
        "lost",
        "twice in the table",
        "in the table and a letter",
        "above the ledger",
        "unknown to Kafka",
        "letters run ahead",
    ],
)
def test_each_fault_is_named(
    kafka: tuple[int, ...], lake: tuple[int, ...], dead: tuple[int, ...], faults: dict[str, int]
) -> None:
    """Lost, duplicated and misplaced rows are counted separately; the rest is exact."""
    found = compare(_offsets(*kafka), _offsets(*lake), _offsets(*dead), log_start=0, ledger=5)
    names = ("lost", "duplicated", "out_of_place", "first_lost")
    seen = {name: found[name] for name in names if found[name] not in (0, None)}
    assert seen == faults


def test_what_retention_removed_is_unknown_and_no_fault() -> None:
    """Rows below the log's start count as unknown, and the result is exact."""
    found = compare(_offsets(3, 4), _offsets(0, 1, 3, 4), _offsets(), log_start=3, ledger=5)
    assert (found["unknown"], found["lost"], found["out_of_place"]) == (2, 0, 0)


def test_a_check_of_nothing_is_not_a_pass() -> None:
    """A check without partitions fails, and so does a single fault."""
    good = PartitionVerdict("t", 0, 5, 5, 5, 0, 0, 0, 0, 0)
    bad = PartitionVerdict("t", 1, 5, 5, 4, 0, 1, 0, 0, 0)
    assert not VerificationResult(()).is_exact
    assert VerificationResult((good,)).is_exact
    assert not VerificationResult((good, bad)).is_exact


def _table(root: Path, commits: int) -> DeltaTable:
    for number in range(commits):
        rows = pa.table(
            {"topic": ["t"], "partition": pa.array([0], pa.int32()), "offset": [number]}
        )
        properties = CommitProperties(app_transactions=[Transaction("g/id/0", number + 1)])
        write_deltalake(root / "t", rows, mode="append", commit_properties=properties)
    return DeltaTable(root / "t")


def test_the_log_is_read_like_another_reader_reads_it(tmp_path: Path) -> None:
    """Commits, checkpoints and removed files give the same result as deltalake."""
    table = _table(tmp_path, 6)
    lake = Lake.at(str(tmp_path))
    for step in (lambda: None, table.create_checkpoint, table.optimize.compact):
        step()
        table.update_incremental()
        state = lake.table("t")
        assert state is not None
        assert state.version == table.version()
        assert state.transactions == {"g/id/0": 6}
        assert {f"{tmp_path}/t/{path}" for path in state.files} == set(table.file_uris())
        assert sorted(offsets_of_topic(lake, "t", state, "t", "id")[0]) == list(range(6))


def test_a_hole_in_the_log_is_no_answer(tmp_path: Path) -> None:
    """A missing commit is an error."""
    _table(tmp_path, 4)
    (tmp_path / "t" / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(BrokenLogError):
        read_table(pyarrow.fs.LocalFileSystem(), str(tmp_path / "t"))


def test_rows_without_partition_and_offset_are_an_error(tmp_path: Path) -> None:
    """A table without partition and offset columns is an error."""
    write_deltalake(tmp_path / "t", pa.table({"x": [1]}))
    lake = Lake.at(str(tmp_path))
    state = lake.table("t")
    assert state is not None
    with pytest.raises(NotVerifiableError, match="partition"):
        offsets_of_topic(lake, "t", state, "t", "id")
