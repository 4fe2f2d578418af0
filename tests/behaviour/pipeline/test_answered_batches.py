"""What a writer looks at when it is told that another one has committed its batch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from behaviour.pipeline.test_joint_table import NAME, Given, _batch, _commit, _info, _rows, _table
from penstock.pipeline.joint_table import BatchToCommit, Handed
from penstock.pipeline.log_entries import BATCH_KEY
from penstock.pipeline.storage import TableStorage


def test_an_answer_costs_one_look_at_the_entry_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at all that others have made meanwhile: that is read when the next batch begins."""
    table, committer = _table(tmp_path), _table(tmp_path)
    read, asked = TableStorage.read_marked, list[str]()

    def noted(self: TableStorage, path: str) -> Any:
        if self is table.storage:
            asked.append(path)
        return read(self, path)

    def commit(batch: BatchToCommit) -> Handed:
        for number in range(1, 4):
            others = _batch(committer, number, 0, 2)
            committer.commit_together([others], name=f"{NAME}{number}")
        done = committer.commit_together([batch], name=NAME)
        committer.commit_together([_batch(committer, 4, 0, 2)], name=f"{NAME}4")
        monkeypatch.setattr(TableStorage, "read_marked", noted)
        return Handed(done.version)

    first, second = _batch(table, 0, 0, 2), _batch(table, 0, 2, 4)
    table.require_current(first.moves)
    assert _commit(table, first, Given(commit)) == 4
    assert asked == ["_delta_log/00000000000000000004.json"]
    table.require_current(second.moves)
    assert table.versions()[0] == 5
    assert len(table._log.round.writer_names) == 5, "who writes is read, too"
    assert _rows(tmp_path) == {number: [0, 1] for number in range(5)}


@pytest.mark.parametrize("case", ["other batch", "other move", "before the batch", "not there"])
def test_an_answer_that_names_a_wrong_entry_is_not_believed(tmp_path: Path, case: str) -> None:
    """Its entry must be later than what the batch builds on, with the batch and all its moves."""
    table, committer = _table(tmp_path), _table(tmp_path)
    batch = _batch(table, 0, 0, 2)
    if case == "before the batch":
        committer.commit_together([replace(_batch(committer, 1, 0, 2), name=batch.name)], name=NAME)
        table.require_current(batch.moves)

    def answer(_: BatchToCommit) -> Handed:
        if case == "before the batch":
            return Handed(1)
        other = _batch(committer, 1, 0, 2)
        if case == "other move":
            other = replace(other, name=batch.name)
        done = committer.commit_together([other], name=NAME)
        return Handed(done.version + (case == "not there"))

    version = _commit(table, batch, Given(answer))
    assert (version, _info(tmp_path, version)[BATCH_KEY]) == (2, batch.name)
    assert _rows(tmp_path) == {0: [0, 1], 1: [0, 1]}


@pytest.mark.parametrize(
    ("named", "requests"),
    [(6, [5, 1]), (-1, [1] * 6), (10**9, [8])],
    ids=["newest", "no", "forged"],
)
def test_a_batch_begins_with_the_entries_that_others_have_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: int, requests: list[int]
) -> None:
    """So many at once, and one more; the state is that of all, whatever was named."""
    table, committer = _table(tmp_path), _table(tmp_path)
    hand_over = Given(lambda _: None)
    _commit(table, _batch(table, 0, 0, 2), hand_over)
    for number in range(1, 6):
        committer.commit_together([_batch(committer, number, 0, 2)], name=f"{NAME}{number}")
    right, asked = TableStorage.for_each, list[int]()

    def counted(self: TableStorage, function: Any, some: Any) -> Any:
        wanted = list(some)
        asked.append(len(wanted))
        return right(self, function, wanted)

    batch = _batch(committer, 0, 2, 4)
    hand_over.named = named
    monkeypatch.setattr(TableStorage, "for_each", counted)
    table.require_current(batch.moves)
    assert asked == requests
    assert table._known is not None
    assert table._known.version == 6


def test_what_an_entry_says_of_a_batch_is_known_before_it_is_made(tmp_path: Path) -> None:
    """Within a half: commits are bounded by it."""
    table = _table(tmp_path)
    batch = _batch(table, 0, 0, 2)
    version = table.commit_together([batch], name=NAME).version
    entry = (tmp_path / "orders" / "_delta_log" / f"{version:020d}.json").stat().st_size
    assert 0.5 < batch.described_bytes / entry < 1.5
