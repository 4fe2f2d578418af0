"""Kills the controller the moment it has told a consumer to stop: then a move is under way.

A hand-over is over in a fraction of a second, so whoever looks once in a while rarely sees one. The
commands themselves are followed, by a thread that does nothing else.
"""

import signal
import threading
from collections.abc import Callable

from penstock.kafka_io.administration import Administration
from penstock.kafka_io.followed_topics import AT_THE_END, FollowedTopics
from penstock.messages import StopConsumingCommand, decode
from penstock.model import TopicPartition
from penstock.processes import ProcessIdentity, send_signal
from penstock.settings import Settings

_LOOK_EVERY_S = 0.2


class KillDuringMove:
    """Laid when it is first asked about."""

    def __init__(self, settings: Settings, controller: Callable[[], ProcessIdentity]) -> None:
        self._settings = settings
        self._controller = controller
        self._stop = threading.Event()
        self._has_struck = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="ambush")

    def has_struck(self) -> bool:
        """Whether the controller was killed; the first question lays the ambush."""
        if self._thread.ident is None:
            self._thread.start()
        return self._has_struck.is_set()

    def leave(self) -> None:
        """Whether it struck or not; also when it was never laid."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _wait(self) -> None:
        topic = self._settings.topics.names.controller
        count = Administration(self._settings.kafka).cluster().partition_counts[topic]
        mailboxes = {TopicPartition(topic, number): AT_THE_END for number in range(1, count)}
        follower = FollowedTopics(self._settings.kafka, mailboxes)
        try:
            while not self._stop.is_set():
                letter = follower.read(_LOOK_EVERY_S)
                if letter is None:
                    continue
                mailbox = letter.partition.partition
                said = decode(
                    letter.value, letter.headers, topic_role="controller", mailbox=mailbox
                )
                if isinstance(said, StopConsumingCommand):
                    send_signal(self._controller(), signal.SIGKILL)
                    self._has_struck.set()
                    return
        finally:
            follower.close()
