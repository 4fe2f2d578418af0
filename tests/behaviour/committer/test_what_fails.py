"""Commits for many, when something fails on the way: nobody waits in vain, no file is lost."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from behaviour.pipeline.test_joint_table import NAME, Given, _batch, _commit, _rows, _table
from penstock.committer import CommitsTogether, serving, together
from penstock.committer.answers import REST_S, REST_WITHOUT_TOPIC_S, AnswersThread
from penstock.committer.awaited import AwaitedBatches
from penstock.committer.core import waiting
from penstock.committer.core.duty import Duty
from penstock.errors import NotPermittedError, PenstockError, UnreachableError
from penstock.kafka_io.failures import TopicMissingError
from penstock.messages import CommitAnswer, CommitterPresence
from penstock.pipeline.failures import LakeRefusedError
from penstock.pipeline.joint_table import CHECKPOINT_LOOKS_APART, Handed, JointTable
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.run_batch import TableBatch
from penstock.pipeline.table_log import TableLog
from penstock.settings import Settings, changed_settings
from penstock.settings.sections import LakeSettings

# What is waited for here is waited for much longer than a busy machine stands still.
ANSWER_S = 60.0
AT_ONCE_S = 20.0


@pytest.fixture
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for an answer that does not come is far longer than `AT_ONCE_S`.

    So is a rest after a batch that was not committed: it does not end while the machine stands.
    """
    for name in ("ANSWER_S_MIN", "ANSWER_S_MAX", "REFRAIN_FIRST_S"):
        monkeypatch.setattr(waiting, name, ANSWER_S)


def handed(mine: CommitsTogether, table: str, batch: Any) -> tuple[Handed | None, float]:
    began_s = time.monotonic()
    found = mine.hand_over(table, batch, frozenset(), lambda: b"k" * 64)
    return found, time.monotonic() - began_s


def test_files_of_a_batch_stay_while_its_outcome_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one commits it late, the own commit is refused, and the log is away for a moment."""
    table, committer = _table(tmp_path), _table(tmp_path)
    batch = _batch(table, 0, 0, 2)
    commit_alone, newest = LakeTable.commit, TableLog.newest
    fails: list[OSError] = []

    def newest_or_fail(self: TableLog, **named: Any) -> Any:
        if fails:
            raise fails.pop()
        return newest(self, **named)

    def late(self: LakeTable, *given: Any, **named: Any) -> int:
        committer.commit_together([batch], name=NAME)
        try:
            return commit_alone(self, *given, **named)
        finally:
            fails.append(OSError("stale file handle"))

    monkeypatch.setattr(LakeTable, "commit", late)
    monkeypatch.setattr(TableLog, "newest", newest_or_fail)
    with pytest.raises(LakeRefusedError) as refused:
        _commit(table, batch, Given(lambda _: Handed()))
    lake = LakeSettings(root=str(tmp_path), group="g")
    TableBatch(lake, table, [], batch.name, is_committing=True).drop(refused.value)
    assert _rows(tmp_path) == {0: [0, 1]}


def test_checkpoints_of_others_are_noticed(tmp_path: Path) -> None:
    """Else the log of a table whose commits others make would look longer and longer."""
    lengths: list[int] = []
    watch: Any = SimpleNamespace(
        committed=lambda _table, _version, entries: lengths.append(entries),
        conflicted=lambda _: None,
    )
    committer = _table(tmp_path)
    table = JointTable(LakeSettings(root=str(tmp_path), group="g"), "orders", watch=watch)
    assert table.exists()

    def commit(batch: Any) -> Handed:
        return Handed(committer.commit_together([batch], name=f"{NAME}{batch.name[-6:]}").version)

    for number in range(2 * CHECKPOINT_LOOKS_APART):
        batch = _batch(table, 3, 2 * number, 2 * number + 2)
        table.require_current(batch.moves)
        _commit(table, batch, Given(commit))
        if number % 5 == 4:
            DeltaTable(tmp_path / "orders").create_checkpoint()
    assert max(lengths) <= CHECKPOINT_LOOKS_APART + 5


def test_nobody_waits_once_the_consumer_ends(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not the tables whose turn comes after that."""
    monkeypatch.setattr(together, "duty_of", lambda *_: Duty.OFFERS)
    monkeypatch.setattr(together, "offer_of", lambda *_: object())
    mine._awaited.heard("orders", commit_s=2.5, is_leaving=False)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    mine.give_up()
    assert handed(mine, "orders", batch)[0] is None
    with mine._awaited.waiting_for("late") as awaited:
        began_s = time.monotonic()
        assert not awaited.wait(60.0)
    assert time.monotonic() - began_s < 30.0


def test_a_batch_whose_offer_failed_is_looked_for(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be on its way: only the log tells."""

    def fail(_: object) -> None:
        raise UnreachableError("no broker answers")

    monkeypatch.setattr(together, "duty_of", lambda *_: Duty.OFFERS)
    monkeypatch.setattr(together, "offer_of", lambda *_: object())
    monkeypatch.setattr(mine, "_send_to", lambda: SimpleNamespace(send=fail))
    mine._awaited.heard("orders", commit_s=0.1, is_leaving=False)
    assert handed(mine, "orders", _batch(_table(tmp_path), 3, 0, 2))[0] == Handed()


class Panic(BaseException):
    """As native code raises it: it is no Exception."""


@pytest.mark.usefixtures("long_waits")
def test_after_a_panic_the_thread_ends_and_the_batch_is_answered(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rests for a while, and everybody commits for itself."""

    def panic(*_: object) -> None:
        raise Panic

    monkeypatch.setattr(together, "duty_of", lambda *_: Duty.COMMITS)
    monkeypatch.setattr(serving.ServingThread, "_serve_on", panic)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    found, took_s = handed(mine, "orders", batch)
    assert found == Handed()
    assert took_s < AT_ONCE_S
    assert handed(mine, "orders", batch)[0] is None
    assert (mine._serving._asked, mine._serving._thread) == ([], None)


@pytest.mark.usefixtures("long_waits")
def test_one_table_that_cannot_be_opened_leaves_the_others_alone(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own batch is answered at once, and the other table is committed."""
    reader = SimpleNamespace(follow=lambda _: None, close=lambda: None, read=lambda _: [])
    monkeypatch.setattr(together, "duty_of", lambda *_: Duty.COMMITS)
    monkeypatch.setattr(serving, "CommitTopicReader", lambda *_: reader)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    asked = {"missing": replace(batch, name=f"{batch.name}x"), "orders": batch}
    found: dict[str, tuple[Handed | None, float]] = {}

    def hand_over(name: str) -> None:
        found[name] = handed(mine, name, asked[name])

    threads = [threading.Thread(target=hand_over, args=(name,)) for name in asked]
    with mine._serving._lock:  # both are asked for before the first is looked at
        for thread in threads:
            thread.start()
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    mine.close()
    assert found["missing"][0] == Handed()
    answered = found["orders"][0]
    assert answered is not None
    assert answered.version is not None
    assert _rows(tmp_path) == {3: [0, 1]}


class Serves:
    """The consumer that commits, with a reader that brings nothing, and what it said to others."""

    def __init__(self, mine: CommitsTogether, monkeypatch: pytest.MonkeyPatch) -> None:
        self.readers = 0
        self.said: list[Any] = []
        monkeypatch.setattr(together, "duty_of", lambda *_: Duty.COMMITS)
        monkeypatch.setattr(serving, "CommitTopicReader", self._reader)
        sender = SimpleNamespace(send=self.said.append, flush=lambda _: None)
        monkeypatch.setattr(mine._serving, "_sender", lambda: sender)

    def _reader(self, *_: object) -> SimpleNamespace:
        def nothing(_: float) -> list[Any]:
            time.sleep(0.01)
            return []

        self.readers += 1
        return SimpleNamespace(follow=lambda _: None, close=lambda: None, read=nothing)


@pytest.mark.usefixtures("long_waits")
def test_one_table_that_cannot_be_committed_leaves_the_others_alone(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tables of the consumer rested for half a minute, and other writers waited in vain."""
    serves, commit = Serves(mine, monkeypatch), JointTable.commit_together

    def refuse(self: JointTable, batches: Any, *, name: str) -> Any:
        if self.name == "bad":
            raise LakeRefusedError("may not write there")
        return commit(self, batches, name=name)

    monkeypatch.setattr(JointTable, "commit_together", refuse)
    bad, good = _table(tmp_path, "bad"), _table(tmp_path)
    others = replace(_batch(bad, 5, 0, 2), name="data/g/6-1/0.id.5.2")
    take = serving.ServingThread._take_own

    def take_both(self: Any, served: Any, reader: Any, name: str, batch: Any) -> None:
        take(self, served, reader, name, batch)
        if name == "bad" and name in served:
            served[name].waiting = served[name].waiting.with_offer(others, time.monotonic())

    monkeypatch.setattr(serving.ServingThread, "_take_own", take_both)
    found, took_s = handed(mine, "bad", _batch(bad, 3, 0, 2))
    assert (found, took_s < AT_ONCE_S) == (Handed(), True)
    answered = handed(mine, "orders", _batch(good, 3, 0, 2))[0]
    assert answered is not None
    assert answered.version is not None
    assert handed(mine, "bad", _batch(bad, 3, 2, 4))[0] is None
    mine.close()
    refused = [one.refused for one in serves.said if isinstance(one, CommitAnswer)]
    assert refused == [("6-1/0.id.5.2",)]
    assert [one.table for one in serves.said if getattr(one, "is_leaving", False)] == [
        "bad",
        "orders",
    ]


def test_the_one_that_commits_does_not_wait_for_a_busy_thread_with_every_batch(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each own batch waited for two seconds while another table could not be committed."""
    Serves(mine, monkeypatch)
    goes_on, has_begun = threading.Event(), threading.Event()

    def hang(self: JointTable, batches: Any, *, name: str) -> Any:
        has_begun.set()
        goes_on.wait(60.0)
        raise LakeRefusedError(f"{self.name} {name} {len(batches)}")

    monkeypatch.setattr(JointTable, "commit_together", hang)
    monkeypatch.setattr(waiting, "REFRAIN_FIRST_S", ANSWER_S)
    slow, table = _table(tmp_path, "slow"), _table(tmp_path)
    thread = threading.Thread(target=handed, args=(mine, "slow", _batch(slow, 2, 0, 2)))
    thread.start()
    assert has_begun.wait(30.0)
    assert handed(mine, "orders", _batch(table, 3, 0, 2))[0] == Handed()
    # The first one waited for as long as an answer usually takes; the second one waits for nothing.
    monkeypatch.setattr(waiting, "ANSWER_S_MIN", ANSWER_S)
    monkeypatch.setattr(waiting, "ANSWER_S_MAX", ANSWER_S)
    found, took_s = handed(mine, "orders", _batch(table, 3, 2, 4))
    goes_on.set()
    thread.join()
    mine.close()
    assert (found, took_s < AT_ONCE_S) == (None, True)


@pytest.mark.usefixtures("long_waits")
def test_a_table_that_cannot_be_opened_is_not_tried_with_every_batch(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try opened a reader, looked at the log, and wrote a warning."""
    serves = Serves(mine, monkeypatch)
    table = _table(tmp_path)
    assert handed(mine, "missing", _batch(table, 3, 0, 2))[0] == Handed()
    assert handed(mine, "missing", _batch(table, 3, 2, 4))[0] is None
    mine.close()
    assert serves.readers == 1


def test_presences_of_tables_that_nobody_asked_for_are_not_kept(tmp_path: Path) -> None:
    """Who may write to the topic could fill the memory of every consumer."""
    settings = changed_settings(Settings(), {"lake.root": str(tmp_path)})
    awaited = AwaitedBatches()
    thread = AnswersThread(settings, awaited, lambda: None)
    thread._tables.add("orders")
    for name in ("orders", "made_up"):
        thread._take(CommitterPresence(table=name, consumer_id=4, incarnation=1, commit_ms=20))
    assert awaited.committer("orders").heard_s is not None
    assert awaited.committer("made_up").heard_s is None


def test_versions_that_answers_name_are_kept_of_tables_that_were_asked_for(tmp_path: Path) -> None:
    """The last one, not the greatest: a forged one is forgotten. A refusal names none."""
    settings = changed_settings(Settings(), {"lake.root": str(tmp_path)})
    awaited = AwaitedBatches()
    thread = AnswersThread(settings, awaited, lambda: None)
    thread._tables.add("orders")

    def take(table: str, version: int, *committed: str) -> None:
        named = CommitAnswer(
            table=table, consumer_id=4, incarnation=1, version=version, committed=committed
        )
        thread._take(named)

    assert awaited.last_version("orders") == -1
    for version in (10**9, 12):
        take("orders", version, "6-1/0.id.5.2")
        take("made_up", version, "6-1/0.id.5.2")
    take("orders", 0)
    assert [awaited.last_version(one) for one in ("orders", "made_up")] == [12, -1]
    awaited.forget_committers()
    assert awaited.last_version("orders") == -1


@pytest.mark.parametrize(
    ("error", "rest_s"),
    [
        (TopicMissingError("no such topic"), REST_WITHOUT_TOPIC_S),
        (NotPermittedError("may not read it"), REST_WITHOUT_TOPIC_S),
        (UnreachableError("no broker answers"), REST_S),
    ],
)
def test_a_topic_that_cannot_be_read_is_left_alone_for_a_while_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: PenstockError, rest_s: float
) -> None:
    """Else a group without the topic would ask for it with every batch."""
    settings = changed_settings(Settings(), {"lake.root": str(tmp_path)})

    def fail() -> None:
        raise error

    thread = AnswersThread(settings, AwaitedBatches(), fail)
    told: list[str] = []
    monkeypatch.setattr(
        thread, "_log", SimpleNamespace(warning=lambda _, error: told.append(error))
    )
    for _ in range(2):
        thread._rests_until_s = 0.0
        thread.listen("orders")
        deadline_s = time.monotonic() + 10.0
        while thread._thread is not None and time.monotonic() < deadline_s:
            time.sleep(0.01)
        left_s = thread._rests_until_s - time.monotonic()
        assert rest_s - 2.0 < left_s <= rest_s
    assert told == [str(error)]
    thread.listen("orders")
    assert thread._thread is None
