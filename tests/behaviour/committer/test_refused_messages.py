"""A consumer that may read the topic of commits and not write it commits for itself, at once."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from behaviour.committer.test_what_fails import ANSWER_S, AT_ONCE_S, handed
from behaviour.pipeline.test_joint_table import _batch, _table
from penstock.committer import CommitsTogether, together
from penstock.committer.answers import REST_WITHOUT_TOPIC_S
from penstock.committer.core import waiting
from penstock.committer.core.duty import Duty
from penstock.errors import NotPermittedError, PenstockError, UnreachableError
from penstock.kafka_io.failures import TopicMissingError
from penstock.pipeline.joint_table import Handed


class Broker:
    """Takes every message. When it is asked later, it says that the message was refused."""

    def __init__(
        self, mine: CommitsTogether, monkeypatch: pytest.MonkeyPatch, error: PenstockError
    ) -> None:
        self.sent, self.told = 0, list[str]()
        self.is_refusing = True
        self._mine, self._error = mine, error
        sender = SimpleNamespace(send=self._send, poll=self._poll, flush=lambda _: None)
        tell = SimpleNamespace(
            warning=lambda event, **_: self.told.append(event), info=lambda *_, **__: None
        )
        monkeypatch.setattr(mine, "_send_to", lambda: sender)
        monkeypatch.setattr(mine, "_log", tell)
        monkeypatch.setattr(together, "duty_of", lambda *_: Duty.OFFERS)
        monkeypatch.setattr(together, "offer_of", lambda *_: object())

    def _send(self, _: object) -> None:
        self.sent += 1

    def _poll(self) -> None:
        if self.sent and self.is_refusing:
            self._mine._not_delivered(self._error)


def _heard(mine: CommitsTogether) -> None:
    mine._awaited.heard("orders", commit_s=0.0, is_leaving=False)


@pytest.mark.parametrize(
    "error", [NotPermittedError("may not write there"), TopicMissingError("no such topic")]
)
def test_who_may_not_offer_waits_for_nothing_and_commits_alone(
    mine: CommitsTogether,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: PenstockError,
) -> None:
    """It waited ten seconds for some batches, and handed over again and again."""
    for name in ("ANSWER_S_MIN", "ANSWER_S_MAX", "HEARD_S_MIN"):
        monkeypatch.setattr(waiting, name, ANSWER_S)
    broker = Broker(mine, monkeypatch, error)
    batch = _batch(_table(tmp_path), 3, 0, 2)
    _heard(mine)
    found, took_s = handed(mine, "orders", batch)
    assert (found, took_s < AT_ONCE_S) == (Handed(), True), "the log says what became of it"
    for duty in Duty:
        monkeypatch.setattr(together, "duty_of", lambda *_, duty=duty: duty)
        assert handed(mine, "orders", batch)[0] is None
    assert (broker.sent, mine._serving._thread) == (1, None)
    left_s = mine._refused_until_s - time.monotonic()
    assert REST_WITHOUT_TOPIC_S - 10.0 < left_s <= REST_WITHOUT_TOPIC_S
    monkeypatch.setattr(together, "duty_of", lambda *_: Duty.OFFERS)
    mine._refused_until_s = 0.0
    assert handed(mine, "orders", batch)[0] == Handed()
    assert broker.sent == 2, "it looks now and then whether it has the right, and who commits"
    assert broker.told == ["commit_message_refused"]


def test_once_it_has_the_right_it_hands_over_again(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No batch that was refused counts as one that was not committed."""
    broker = Broker(mine, monkeypatch, NotPermittedError("may not write there"))
    batch = _batch(_table(tmp_path), 3, 0, 2)
    for _ in range(3):
        _heard(mine)
        assert handed(mine, "orders", batch)[0] == Handed()
        mine._refused_until_s = 0.0
    broker.is_refusing = False
    sender = mine._send_to()
    sent = sender.send

    def send(message: object) -> None:
        sent(message)  # type: ignore[arg-type]  # it is a stand-in
        mine._awaited.answer([batch.name], 7)

    monkeypatch.setattr(sender, "send", send)
    assert handed(mine, "orders", batch)[0] == Handed(7)


def test_a_refusal_that_is_known_while_sending_counts_too(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client knows it by then, and takes no message."""
    Broker(mine, monkeypatch, NotPermittedError("may not write there"))
    asked: list[object] = []

    def refuse(message: object) -> None:
        asked.append(message)
        raise NotPermittedError("may not write there")

    monkeypatch.setattr(mine, "_send_to", lambda: SimpleNamespace(send=refuse))
    batch = _batch(_table(tmp_path), 3, 0, 2)
    _heard(mine)
    assert handed(mine, "orders", batch)[0] == Handed()
    assert handed(mine, "orders", batch)[0] is None
    assert len(asked) == 1


def test_a_message_that_was_lost_is_no_missing_right(
    mine: CommitsTogether, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch is handed over again, as soon as the other is heard."""
    monkeypatch.setattr(waiting, "ANSWER_S_MIN", 0.2)
    broker = Broker(mine, monkeypatch, UnreachableError("no broker answers"))
    batch = _batch(_table(tmp_path), 3, 0, 2)
    for _ in range(2):
        _heard(mine)
        assert handed(mine, "orders", batch)[0] == Handed()
    assert broker.sent == 2
