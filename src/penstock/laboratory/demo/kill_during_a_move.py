"""Kills the controller right after it commands a consumer to stop: then a move is under way.

A hand-over takes a fraction of a second, so polling the status would rarely see one. Instead a
thread follows the commands on the controller's topic.
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
    """Starts to follow the commands at the first call of `has_killed`."""

    def __init__(self, settings: Settings, controller: Callable[[], ProcessIdentity]) -> None:
        self._settings = settings
        self._controller = controller
        self._stop = threading.Event()
        self._has_killed = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="kill-during-a-move")

    def has_killed(self) -> bool:
        """Whether the controller was killed; the first call starts the thread."""
        if self._thread.ident is None:
            self._thread.start()
        return self._has_killed.is_set()

    def stop(self) -> None:
        """Stop the thread, whether it has killed the controller or not, or was never started."""
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
                record = follower.read(_LOOK_EVERY_S)
                if record is None:
                    continue
                mailbox = record.partition.partition
                message = decode(
                    record.value, record.headers, topic_role="controller", mailbox=mailbox
                )
                if isinstance(message, StopConsumingCommand):
                    send_signal(self._controller(), signal.SIGKILL)
                    self._has_killed.set()
                    return
        finally:
            follower.close()
