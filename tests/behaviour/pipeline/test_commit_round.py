"""How many writers a table has, and how long they need to commit one after another."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from penstock.consumer.core.cadence import batch_period_ms
from penstock.model import TopicPartition
from penstock.pipeline import log_commit
from penstock.pipeline.commit_round import COMMIT_S_MIN, WINDOW_S, CommitRound
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.log_commit import WaitingEntry
from penstock.pipeline.log_entries import parse_entry
from penstock.pipeline.storage import TableStorage
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_writers_are_counted_once() -> None:
    """By group, consumer and incarnation; commits of other tools count as one more writer."""
    commits = CommitRound(Clock())
    for batch in ("data/g/1-7/1.id.0.new", "data/g/1-7/2.id.0.5", "data/g/2-7/1.id.1.new"):
        commits.seen(batch)
    assert commits.writers == 2
    commits.seen("data/h/1-7/1.id.0.new")
    for foreign in (None, None, "", "job-1", "a/b"):
        commits.seen(foreign)
    assert commits.writers == 4


def test_the_memory_of_writers_is_bounded() -> None:
    """Whatever names are read, and if nobody asks for them; those that were seen last stay."""
    commits = CommitRound(Clock())
    for number in range(5_000):
        commits.seen("data/g/1-1/1")
        commits.seen(f"data/g/{number}-2/1")
    commits.took(0.1)
    assert commits.writers == 1_000
    assert "data/g/1-1" in commits._seen_s


def test_a_batch_that_is_no_text_is_none() -> None:
    """Others may write what they like into their entries."""
    assert parse_entry(b'{"commitInfo":{"penstockBatch":5}}').batch is None
    assert parse_entry(b'{"commitInfo":{"penstockBatch":"b5"}}').batch == "b5"


def test_a_writer_that_commits_no_more_is_forgotten() -> None:
    """It has left the group, or carries nothing now."""
    clock = Clock()
    commits = CommitRound(clock)
    commits.seen("data/g/1-1/1")
    clock.now_s += WINDOW_S
    commits.seen("data/g/2-1/1")
    assert commits.writers == 2
    clock.now_s += 1
    assert commits.writers == 1


def test_a_round_is_the_usual_commit_of_each_writer() -> None:
    """One slow commit of five does not count; before the first nothing is known."""
    commits = CommitRound(Clock())
    assert commits.seconds == 0
    for number in range(3):
        commits.seen(f"data/g/{number}-1/1")
    assert commits.seconds == 0
    for seconds in (0.1, 0.1, 9.0, 0.2, 0.1):
        commits.took(seconds)
    assert commits.seconds == pytest.approx(0.3)
    for _ in range(5):
        commits.took(0.4)
    assert commits.seconds == pytest.approx(1.2)


def test_a_commit_counts_for_25_ms_at_least() -> None:
    """Fifty quick writers then begin batches 2.5 s apart, and make 20 commits a second."""
    commits = CommitRound(Clock())
    for number in range(50):
        commits.seen(f"data/g/{number}-1/1")
    commits.took(0.001)
    assert commits.seconds == pytest.approx(50 * COMMIT_S_MIN)
    assert batch_period_ms(commits.seconds, 1_000, 5_000) == 2_500


def test_a_table_knows_its_writers_from_its_log(tmp_path: Path) -> None:
    """Each that has committed since it was opened; what was there before may be long ago."""
    lake = LakeSettings(root=str(tmp_path), group="g")
    tables = [LakeTable(lake, "orders") for _ in range(3)]
    tables[0].open_for(SCHEMA, ())
    for number, table in enumerate(tables):
        _commit(table, number, 1)
    assert [table._log.round.writers for table in tables] == [1, 1, 1]
    for number, table in enumerate(tables):
        assert table.commit_round_s > 0
        _commit(table, number, 2)
    late = LakeTable(lake, "orders")
    _commit(late, 3, 1)
    for table in [*tables, late]:
        table.exists()
    assert [table._log.round.writers for table in [*tables, late]] == [4, 4, 4, 1]


def _commit(table: LakeTable, number: int, end: int) -> None:
    move = LedgerMove(TopicPartition("orders", number), f"g/id/{number}", end - 1 or None, end)
    table.commit([move], [], batch=f"data/g/{number}-1/{end}.id.{number}.0")


class SlowSteps:
    """In place of the module `time`: every look at the clock is 0.2 s later."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.waits_s: list[float] = []

    def monotonic(self) -> float:
        self.now_s += 0.2
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.waits_s.append(seconds)


def test_a_lost_race_costs_one_entry_to_read_and_a_wait_that_becomes_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks whether the next version is taken: putting it tells."""
    lake = LakeSettings(root=str(tmp_path), group="g")
    table, other = LakeTable(lake, "orders"), LakeTable(lake, "orders")
    table.open_for(SCHEMA, ())
    _commit(table, 1, 1)
    _commit(other, 2, 1)
    steps, put, read = SlowSteps(), WaitingEntry.put_at, TableStorage.read_marked
    monkeypatch.setattr(log_commit, "time", steps)
    versions_read: list[int] = []
    quicker = iter([2, 3, 4])

    def put_late(self: WaitingEntry, version: int) -> Any:
        number = next(quicker, None)
        if number is not None:
            with monkeypatch.context() as undisturbed:
                undisturbed.setattr(WaitingEntry, "put_at", put)
                undisturbed.setattr(TableStorage, "read_marked", read)
                _commit(other, 2, number)
        return put(self, version)

    def noted(self: TableStorage, path: str) -> Any:
        if path.endswith(".json"):
            versions_read.append(int(Path(path).stem))
        return read(self, path)

    monkeypatch.setattr(WaitingEntry, "put_at", put_late)
    monkeypatch.setattr(TableStorage, "read_marked", noted)
    _commit(table, 1, 2)
    # Version 2 is the other's first; 3 is looked for once, and then taken three times in a row.
    assert versions_read == [2, 3, 3, 4, 5]
    # Every attempt takes 0.6 s, the other's commit included. Who lost more comes first.
    assert steps.waits_s == pytest.approx([0.6, 0.6 / 2, 0.6 / 3])
    assert DeltaTable(tmp_path / "orders").version() == 6
    assert DeltaTable(tmp_path / "orders").transaction_version("g/id/1") == 2
    assert DeltaTable(tmp_path / "orders").transaction_version("g/id/2") == 4
