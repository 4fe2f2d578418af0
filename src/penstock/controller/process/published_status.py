"""What people see of the group: the status in a file of this folder, and in Kafka for everybody.

The record on `<prefix>-status` is written by a thread of its own, beside the controller's
transactions: it can neither delay nor fail a command. A status that is overtaken before the thread
comes to it is dropped. It names the controller's epoch, so that a reader knows the newer
controller's from that of one which was replaced and does not know it yet.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.controller.core.snapshot import snapshot_without_question
from penstock.controller.core.state import State
from penstock.controller.process.kept_settings import KeptSettings
from penstock.controller.process.status_file import (
    STATUS_NAME,
    KeptQuestion,
    deployment_shown,
    status_text,
    with_part,
    write_status,
)
from penstock.deployment import DeploymentTemplate
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.status_topic import StatusPublisher
from penstock.messages.status_records import status_parts
from penstock.settings import Settings

# How often a topic that is missing, or a broker that is away, is looked for again.
_LOOK_AGAIN_S = 30.0
# At the end, for the last status, which says that the controller has ended.
_LAST_STATUS_S = 3.0


class PublishedStatus:
    def __init__(
        self, settings: Settings, controller_epoch: int, kept_settings: KeptSettings, log: Any
    ) -> None:
        self._settings = settings
        self._kept_settings = kept_settings
        self._log = log
        self._file = Path(settings.controller.directory) / STATUS_NAME
        self._sender = StatusSender(settings, controller_epoch, log)
        self._question = KeptQuestion()

    def write(
        self,
        state: State,
        template: DeploymentTemplate,
        unix_ms: int,
        *,
        is_degraded: bool,
        has_ended: bool = False,
        freshness: Mapping[str, float | None],
    ) -> float:
        """Returns the processor time that a status takes, in seconds.

        A full disk does not end the controller.
        """
        began_s = time.thread_time()
        status = {
            **snapshot_without_question(state, unix_ms, is_degraded=is_degraded),
            "deployment": deployment_shown(template),
            "group": self._settings.lake.group,
            "prefix": self._settings.topics.prefix,
            **freshness,
            "has_ended": has_ended,
        }
        text = with_part(status_text(status), "question", self._question.text(state))
        write_status(self._file, text, self._log)
        self._kept_settings.show(state, template, unix_ms)
        in_force = self._kept_settings.shown_text
        self._sender.offer(f'{{"status":{text},"settings_in_force":{in_force}}}')
        return time.thread_time() - began_s + self._sender.took_s

    def close(self) -> None:
        self._sender.close()


class StatusSender:
    def __init__(self, settings: Settings, controller_epoch: int, log: Any) -> None:
        self._settings = settings
        self._epoch = controller_epoch
        self._log = log
        self._sent = 0
        self._offered: str | None = None
        self._is_ending = False
        self._changed = threading.Condition()
        # The processor time of the newest one here.
        self.took_s = 0.0
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)
        self._thread.start()

    def offer(self, text: str) -> None:
        """Waits for nothing: the newest one is sent as soon as it can be."""
        with self._changed:
            self._offered = text
            self._changed.notify()

    def close(self) -> None:
        """Give the last status a moment to reach the broker."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(_LAST_STATUS_S)

    def _next(self) -> str | None:
        """None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._offered is not None or self._is_ending)
            text, self._offered = self._offered, None
            return text

    def _run(self) -> None:
        publisher: StatusPublisher | None = None
        told = ""
        while (text := self._next()) is not None:
            try:
                if publisher is None:
                    publisher = self._connected()
                began_s = time.thread_time()
                self._sent += 1
                group = self._settings.lake.group
                publisher.publish(status_parts(group, self._epoch, self._sent, text))
                self.took_s = time.thread_time() - began_s
                told = ""
            except (PenstockError, ValueError) as error:
                publisher = None
                if str(error) != told:
                    self._log.warning("status_not_in_kafka", why=str(error))
                told = str(error)
                self._wait(_LOOK_AGAIN_S)
        if publisher is not None:
            publisher.flush(_LAST_STATUS_S)

    def _connected(self) -> StatusPublisher:
        """Make the topic first where it is missing: a group of an older release."""
        topic = self._settings.topics.names.status
        if topic not in Administration(self._settings.kafka).topics([topic]):
            for line in make_control_topics(self._settings):
                self._log.info("topic_changed", explanation=line)
        return StatusPublisher(self._settings.kafka, self._settings.topics, on_change=self._told)

    def _told(self, error: Exception | None) -> None:
        if error is None:
            self._log.info("status_in_kafka")
        else:
            self._log.warning("status_not_in_kafka", why=str(error))

    def _wait(self, wait_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_ending, wait_s)
