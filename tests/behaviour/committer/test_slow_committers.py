"""Commits for many, when who commits is slow: it is waited for, unless it is dead or hangs."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from behaviour.committer.test_what_fails import ANSWER_S, AT_ONCE_S, Serves, handed
from behaviour.pipeline.test_joint_table import _batch, _rows, _table
from penstock.committer import CommitsTogether, presences, serving, together
from penstock.committer.core import waiting
from penstock.committer.core.duty import Duty
from penstock.committer.presences import Presences
from penstock.messages import CommitAnswer, CommitterPresence
from penstock.pipeline.failures import LakeRefusedError
from penstock.pipeline.joint_table import Handed, JointTable


@pytest.fixture
def offers(mine: CommitsTogether, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When this consumer handed a batch over. It soon waits only for who is still heard."""
    sent: list[float] = []
    sender = SimpleNamespace(send=lambda _: sent.append(time.monotonic()), poll=lambda: None)
    monkeypatch.setattr(together, "duty_of", lambda *_: Duty.OFFERS)
    monkeypatch.setattr(together, "offer_of", lambda *_: object())
    monkeypatch.setattr(mine, "_send_to", lambda: sender)
    monkeypatch.setattr(waiting, "ANSWER_S_MIN", 0.2)
    return sent


def _heard(mine: CommitsTogether) -> None:
    mine._awaited.heard("orders", commit_s=0.0, is_leaving=False)


def test_who_is_slow_and_still_heard_is_waited_for(
    mine: CommitsTogether,
    offers: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each writer that gave up committed beside it, which made both slower, and more gave up."""
    monkeypatch.setattr(waiting, "ANSWER_S_MAX", ANSWER_S)
    monkeypatch.setattr(waiting, "HEARD_S_MIN", ANSWER_S)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    answered = threading.Timer(0.7, lambda: mine._awaited.answer([batch.name], 7))

    def send(_: object) -> None:
        _heard(mine)
        answered.start()

    monkeypatch.setattr(mine, "_send_to", lambda: SimpleNamespace(send=send, poll=lambda: None))
    _heard(mine)
    found, took_s = handed(mine, "orders", batch)
    assert found == Handed(7)
    assert took_s >= 0.7


def test_who_is_silent_is_not_waited_for_and_asked_once_more(
    mine: CommitsTogether,
    offers: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One answer may be lost. Who misses two is left alone, unless the log has such a batch."""
    # Who is heard is waited for so long; this one was heard before the batch was handed over.
    monkeypatch.setattr(waiting, "ANSWER_S_MAX", ANSWER_S)
    monkeypatch.setattr(waiting, "HEARD_S_MIN", ANSWER_S)
    monkeypatch.setattr(waiting, "REFRAIN_FIRST_S", ANSWER_S)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    _heard(mine)
    found, took_s = handed(mine, "orders", batch)
    assert (found, took_s < AT_ONCE_S) == (Handed(), True)
    assert handed(mine, "orders", batch)[0] is None, "it was not heard again"
    _heard(mine)
    assert handed(mine, "orders", batch)[0] == Handed()
    _heard(mine)
    assert handed(mine, "orders", batch)[0] is None
    mine.found_committed("orders")
    assert handed(mine, "orders", batch)[0] == Handed()
    assert len(offers) == 3


def test_who_commits_is_heard_while_a_commit_is_under_way(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow commit was silence, and its writers gave up. One that hangs is silent."""
    serves = Serves(mine, monkeypatch)
    goes_on, has_begun = threading.Event(), threading.Event()

    def hang(_: JointTable, __: Any, *, name: str) -> Any:
        has_begun.set()
        goes_on.wait(60.0)
        raise LakeRefusedError(f"not {name}")

    def short(say: Any) -> Presences:
        return Presences(say, period_s=0.02)

    monkeypatch.setattr(JointTable, "commit_together", hang)
    monkeypatch.setattr(serving, "Presences", short)
    monkeypatch.setattr(presences, "ANSWER_S_MAX", 0.5)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    thread = threading.Thread(target=handed, args=(mine, "orders", batch))
    thread.start()
    assert has_begun.wait(30.0)
    deadline_s, said = time.monotonic() + 30.0, len(serves.said)
    while len(serves.said) < said + 3:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    while True:
        assert time.monotonic() < deadline_s
        said = len(serves.said)
        time.sleep(0.3)
        if said == len(serves.said):
            break
    goes_on.set()
    thread.join()
    mine.close()
    is_leaving = [one.is_leaving for one in serves.said if isinstance(one, CommitterPresence)]
    assert is_leaving == [False] * (len(is_leaving) - 1) + [True], "nobody comes back who left"


def test_offers_that_waited_too_long_are_answered_and_not_committed(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their writers commit for themselves by then."""
    monkeypatch.setattr(waiting, "ANSWER_S_MAX", ANSWER_S)
    monkeypatch.setattr(waiting, "ANSWER_S_MIN", ANSWER_S)
    serves = Serves(mine, monkeypatch)
    table = _table(tmp_path)
    late = replace(_batch(table, 5, 0, 2), name="data/g/6-1/0.id.5.2")
    take = serving.ServingThread._take_own

    def take_both(self: Any, served: Any, reader: Any, name: str, batch: Any) -> None:
        take(self, served, reader, name, batch)
        one, long_ago_s = served[name], time.monotonic() - waiting.ANSWER_S_MAX - 1
        one.waiting = one.waiting.with_offer(late, long_ago_s)

    monkeypatch.setattr(serving.ServingThread, "_take_own", take_both)
    answered = handed(mine, "orders", _batch(table, 3, 0, 2))[0]
    mine.close()
    assert answered is not None
    assert answered.version is not None
    assert mine.last_version("orders") == answered.version
    assert _rows(tmp_path) == {3: [0, 1]}
    answers = [one for one in serves.said if isinstance(one, CommitAnswer)]
    assert [(one.committed, one.refused) for one in answers] == [((), ("6-1/0.id.5.2",))]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_fails_while_it_leaves_is_followed_by_another(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every batch of this consumer would wait for a thread that is dead."""

    def fail(*_: object) -> None:
        raise ValueError("nobody foresaw this")

    monkeypatch.setattr(mine._serving, "_serve_on", fail)
    monkeypatch.setattr(mine._serving, "_leave", fail)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    assert mine._serving.serve("orders", batch)
    # To its end: what it raises belongs to this test, and not to the next one.
    for thread in threading.enumerate():
        if thread.name == "penstock-committer":
            thread.join(10.0)
    assert mine._serving._thread is None
    assert not mine._serving.serve("orders", batch), "it rests for a while"
