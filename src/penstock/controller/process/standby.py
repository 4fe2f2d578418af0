"""A second controller that waits until no other one leads.

It listens to the heartbeats that a leading controller writes to its own partition. When they stop,
or the leading one says that it ends, it takes the lead. If the other one still lives, the broker
fences it, so a wrong guess costs a change of leaders and never a record. Silence is counted only
while Kafka answers: a broker that is away, or a standby that stands still, says nothing about the
controller.
"""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from penstock.controller.process.prefix_holder import PrefixTakenError, taken
from penstock.errors import PenstockError
from penstock.kafka_io.partition_reader import (
    FailureKind,
    KafkaRecord,
    PartitionReader,
    ReadFailure,
)
from penstock.messages import (
    ControllerHeartbeat,
    LeadershipClaim,
    LeadershipEnd,
    decode,
    group_named,
)
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.telemetry import Health

# How long one read waits: also how long it takes to notice that the process should end.
READ_WAIT_S = 0.5
# One look at the log counts as so much silence at most. A look that took longer waited for an
# answer: what the leader wrote meanwhile may still be on its way.
SILENCE_OF_A_LOOK_S_MAX = 2 * READ_WAIT_S
# How long to wait before a new connection while no broker answers.
AWAY_PAUSE_S = 1.0


class Standby:
    def __init__(
        self,
        settings: Settings,
        health: Health,
        log: Any,
        *,
        is_ending: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._partition = TopicPartition(settings.topics.names.controller, 0)
        self._health = health
        self._log = log
        self._is_ending = is_ending
        self._monotonic = monotonic
        self._leader_epoch = 0
        self._has_leader_ended = False
        self._is_listening = False

    def wait(self) -> None:
        """Return when no controller leads, or when this process should end."""
        self._health.begun()
        is_away = False
        while not self._is_ending():
            self._health.beat()
            try:
                if self._is_leaderless():
                    return
            except PrefixTakenError:
                raise  # to wait for another group's end would be to take its topics over
            except PenstockError as error:
                if not is_away:
                    self._log.warning("kafka_unreachable", error=str(error))
                is_away = True
                self._health.lacks("kafka", "no broker answers")
                time.sleep(AWAY_PAUSE_S)  # brokers do not announce that they are back
            else:
                is_away = False

    def _is_leaderless(self) -> bool:
        """Listen until heartbeats stop. Raises while Kafka does not answer."""
        with closing(PartitionReader(self._settings.kafka)) as reader:
            reader.assign({self._partition: reader.log_range(self._partition).end})
            self._health.lacks("kafka", None)
            if not self._is_listening:  # from here on it hears what the leading one says
                self._is_listening = True
                after_s = self._settings.controller.takeover_after
                self._log.info("standing_by", takeover_after_s=after_s)
            silent_s = 0.0
            while not self._is_ending():
                self._health.beat()
                began_s = self._monotonic()
                if self._hears_a_heartbeat(reader):
                    silent_s = 0.0
                elif self._has_leader_ended:
                    self._log.info("leader_ended", leader_epoch=self._leader_epoch)
                    return True
                # It answers, and nothing is left to read.
                elif reader.log_range(self._partition).end <= reader.positions[self._partition]:
                    silent_s += min(self._monotonic() - began_s, SILENCE_OF_A_LOOK_S_MAX)
                    if silent_s >= self._settings.controller.takeover_after:
                        self._log.warning(
                            "leader_silent",
                            leader_epoch=self._leader_epoch,
                            silent_s=round(silent_s, 1),
                        )
                        return True
        return False

    def _hears_a_heartbeat(self, reader: PartitionReader) -> bool:
        is_heard = False
        for outcome in reader.read(READ_WAIT_S):
            if isinstance(outcome, ReadFailure):
                if outcome.kind is FailureKind.OFFSET_GONE:
                    reader.restart(self._partition)
                else:
                    raise outcome.error  # time without an answer is not silence
            elif isinstance(outcome, KafkaRecord):
                found = decode(outcome.value, outcome.headers, topic_role="controller", mailbox=0)
                if isinstance(found, ControllerHeartbeat):
                    self._require_own_group(outcome)
                    is_heard, self._leader_epoch = True, found.controller_epoch
                    self._has_leader_ended = False
                elif isinstance(found, LeadershipClaim):
                    # Two that began to wait together find nobody at the same moment. The one that
                    # claims first leads; the other one would only fence it.
                    self._require_own_group(outcome)
                    is_heard, self._has_leader_ended = True, False
                elif isinstance(found, LeadershipEnd):
                    self._has_leader_ended = found.controller_epoch >= self._leader_epoch
        return is_heard

    def _require_own_group(self, sign: KafkaRecord) -> None:
        """A controller of an older release names no group: it is taken for one of ours."""
        named = group_named(sign.headers)
        if named and named != self._settings.lake.group:
            raise taken(self._settings, f"a controller of group {named}", named)
