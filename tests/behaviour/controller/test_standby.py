"""How a standby counts the silence of the leading controller; Kafka's part is played."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.controller.process import standby as module
from penstock.controller.process.standby import READ_WAIT_S, Standby
from penstock.kafka_io.partition_reader import KafkaRecord, Outcome
from penstock.messages import ControllerHeartbeat, encode
from penstock.model import OffsetRange, TopicPartition
from penstock.settings import Settings
from penstock.telemetry import Health

SETTINGS = Settings()
PARTITION = TopicPartition(SETTINGS.topics.names.controller, 0)
TAKEOVER_AFTER_S = SETTINGS.controller.takeover_after


@dataclass
class PlayedKafka:
    """A clock, and a log whose leader wrote heartbeats at the given seconds."""

    heartbeats_at_s: list[float] = field(default_factory=list)
    # From the first second until the second one nothing is answered.
    away_s: tuple[float, float] = (-1.0, -1.0)
    # From the first second until the second one this process does not run.
    stands_still_s: tuple[float, float] = (-1.0, -1.0)
    # Records that are on the log and not read yet, for ever.
    unread: int = 0
    now_s: float = 0.0
    positions: dict[TopicPartition, int] = field(default_factory=lambda: {PARTITION: 0})

    def assign(self, offsets: dict[TopicPartition, int]) -> None:
        self.positions = dict(offsets)

    def close(self) -> None:
        """Nothing is open."""

    def read(self, timeout_s: float) -> list[Outcome]:
        self._pass(timeout_s)
        if self._is_in(self.away_s):
            return []
        heard = [at_s for at_s in self.heartbeats_at_s if at_s <= self.now_s]
        self.heartbeats_at_s = [at_s for at_s in self.heartbeats_at_s if at_s > self.now_s]
        beat = encode(ControllerHeartbeat(controller_epoch=7, heartbeat_number=1), group="penstock")
        return [KafkaRecord(PARTITION, 0, 0, None, beat.value, beat.headers) for _ in heard[:1]]

    def log_range(self, partition: TopicPartition) -> OffsetRange:
        if self._is_in(self.away_s):
            self.now_s = self.away_s[1]  # it answers as soon as it is back
        return OffsetRange(partition, 0, self.positions[partition] + self.unread)

    def _pass(self, seconds: float) -> None:
        self.now_s += seconds
        if self._is_in(self.stands_still_s):
            self.now_s = self.stands_still_s[1]

    def _is_in(self, period_s: tuple[float, float]) -> bool:
        return period_s[0] <= self.now_s < period_s[1]


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}

    def info(self, event: str, **fields: Any) -> None:
        self.events[event] = fields

    warning = info


Waited = Callable[..., tuple[float, Log]]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Waited:
    """Lets a standby wait, at most until a second; gives the second at which it ended, and why."""

    def wait(kafka: PlayedKafka, until_s: float = 1_000.0) -> tuple[float, Log]:
        monkeypatch.setattr(module, "PartitionReader", lambda _: kafka)
        log = Log()
        Standby(
            SETTINGS,
            Health(),
            log,
            is_ending=lambda: kafka.now_s >= until_s,
            monotonic=lambda: kafka.now_s,
        ).wait()
        return kafka.now_s, log

    return wait


def test_a_leader_that_is_silent_is_followed_after_its_time(waited: Waited) -> None:
    """Counted from its last heartbeat."""
    ended_s, log = waited(PlayedKafka(heartbeats_at_s=[1.0, 2.0, 3.0]))
    assert ended_s == pytest.approx(3.0 + TAKEOVER_AFTER_S, abs=READ_WAIT_S)
    assert log.events["leader_silent"]["leader_epoch"] == 7


@pytest.mark.parametrize("lack", ["away_s", "stands_still_s"])
def test_time_without_an_answer_is_no_silence(waited: Waited, lack: str) -> None:
    """The broker is away, or this process stands still, for longer than a leader may be silent.

    What the leader wrote meanwhile comes a second after that.
    """
    begins_s, ends_s = 2.0, 2.0 + 2 * TAKEOVER_AFTER_S
    kafka = PlayedKafka(heartbeats_at_s=[1.0, ends_s + 1.0])
    setattr(kafka, lack, (begins_s, ends_s))
    ended_s, log = waited(kafka)
    assert ended_s == pytest.approx(ends_s + 1.0 + TAKEOVER_AFTER_S, abs=READ_WAIT_S)
    assert log.events["leader_silent"]["silent_s"] <= TAKEOVER_AFTER_S + 2 * READ_WAIT_S


def test_nobody_is_judged_while_there_is_more_to_read(waited: Waited) -> None:
    """The heartbeat may be among what is not read yet."""
    _, log = waited(PlayedKafka(unread=1), until_s=3 * TAKEOVER_AFTER_S)
    assert "leader_silent" not in log.events
