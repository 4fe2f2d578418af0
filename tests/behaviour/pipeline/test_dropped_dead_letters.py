"""What becomes of the dead letters of a batch that fails, on real Delta tables, without Spark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import StaleWriterError
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.dead_letters import LETTERS_SCHEMA
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.run_batch import PendingDeadLetters, TableBatch
from penstock.pipeline.table_with_files import TableWithFiles
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings

PLACE = TopicPartition("orders", 0)


class _PassingError(Exception):
    """Something fails that has nothing to do with the ledger."""


def _fail(wrong_point: str) -> Callable[[str], None]:
    def at_point(point: str) -> None:
        if point == wrong_point:
            raise _PassingError

    return at_point


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableBatch:
    """With one dead letter that is written; from here on no list of files may be read."""
    lake = LakeSettings(root=str(tmp_path), group="g")
    letters = LakeTable(lake, "dead_letters")
    letters.open_for(LETTERS_SCHEMA, ())
    path = "data/g/1-1/7.id.0.new/part-0.parquet"
    (tmp_path / "dead_letters" / path).parent.mkdir(parents=True)
    (tmp_path / "dead_letters" / path).write_bytes(b"a letter")
    planned = [PlannedRange(OffsetRange(PLACE, 0, 5), "id")]
    made = TableBatch(lake, LakeTable(lake, "orders"), planned, "data/g/1-1/7.id.0.new")
    moves = [LedgerMove(PLACE, "g/id/0", None, 5)]
    files = [WrittenFile(path, 8, 0, 1, {}, "{}")]
    made.dead_letters.append(PendingDeadLetters(letters, made.folder, moves, files))

    def opened(_: TableWithFiles) -> Any:
        raise AssertionError("the list of files is read")

    monkeypatch.setattr(TableWithFiles, "newest", opened)
    return made


def _is_there(batch: TableBatch) -> bool:
    (letters,) = batch.dead_letters
    return letters.table.storage.local_path(letters.files[0].path).exists()


def test_letters_that_were_not_committed_are_removed(batch: TableBatch) -> None:
    """The batch failed before: nobody will ever name their files."""
    batch.drop(_PassingError())
    assert not _is_there(batch)


def test_letters_that_are_committed_stay(batch: TableBatch) -> None:
    """The batch failed between its two commits: the table of letters names their files."""
    with pytest.raises(_PassingError) as failed:
        batch.commit([], _fail("dead-letters-committed"))
    batch.drop(failed.value)
    assert _is_there(batch)


def test_letters_whose_commit_has_no_answer_stay(
    batch: TableBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be in the table; if they are not, a sweep removes them once the ledger moves."""

    def lost(*_: Any, **__: Any) -> int:
        raise _PassingError

    monkeypatch.setattr(LakeTable, "commit", lost)
    with pytest.raises(_PassingError) as failed:
        batch.commit([], lambda _: None)
    batch.drop(failed.value)
    assert _is_there(batch)


def test_letters_that_the_ledger_refuses_are_removed(batch: TableBatch) -> None:
    """Another writer has the partition, and they are certainly in no version."""
    other = LakeTable(batch.lake, "dead_letters")
    other.commit([LedgerMove(PLACE, "g/id/0", None, 3)], [], batch="another")
    with pytest.raises(StaleWriterError) as failed:
        batch.commit([], lambda _: None)
    batch.drop(failed.value)
    assert not _is_there(batch)
