"""Starts one consumer and sends it commands, in place of a controller.

It makes no plans and saves no state; a study uses it to measure a consumer alone.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.leading_producer import LeadingProducer, Outgoing
from penstock.kafka_io.mailbox import Mailbox
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.messages import (
    ConsumerReport,
    PartitionToStart,
    StartConsumingCommand,
    decode,
    encode,
)
from penstock.model import TopicPartition
from penstock.processes import ProcessIdentity, is_alive, send_signal, start_child, stop
from penstock.settings import Settings, changed_settings
from penstock.settings.handed_over import environment_beside, settings_text
from penstock.settings.tree import OptionPath
from penstock.topics import control_topics

START_TIMEOUT_S = 90.0
CONSUMER = 1


@dataclass(slots=True)
class StudiedConsumer:
    """One consumer process. The folder holds its settings, state and log.

    It runs with these settings whatever is in the environment; `secret_files` are the files that
    its secrets came from, where they did not come from the environment.
    """

    settings: Settings
    folder: Path
    secret_files: Mapping[OptionPath, str] = field(default_factory=dict)
    reports: list[ConsumerReport] = field(default_factory=list)
    process: ProcessIdentity | None = None
    _mailbox: Mailbox | None = None

    def __enter__(self) -> Self:
        kafka = Administration(self.settings.kafka)
        for topic in control_topics(self.settings.topics, highest_consumer_id=CONSUMER):
            kafka.create_topic(topic.name, partitions=topic.partitions, settings=topic.settings)
        own = self._own_settings()
        file = self.folder / "settings.yaml"
        file.write_text(settings_text(own, self.secret_files), encoding="utf-8")
        command = [sys.executable, "-m", "penstock", "consumer", "--id", str(CONSUMER)]
        self.process = start_child(
            [*command, "-f", str(file)],
            log_file=self.log_file,
            environment=environment_beside(own, self.secret_files, os.environ),
        )
        names = self.settings.topics.names
        self._mailbox = Mailbox(
            self.settings.kafka,
            TopicPartition(names.consumer, 0),
            TopicPartition(names.query, 0),
        )
        self._mailbox.open({})
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            stop(self.process, grace_s=40)
        if self._mailbox is not None:
            self._mailbox.close()

    def _own_settings(self) -> Settings:
        """It leaves the places of the real consumers alone, and its log is read by the study."""
        changes = {
            "consumer.state_root": str(self.folder / "state"),
            "telemetry.metrics_targets": "",
            "log.format": "json",
            "log.level": "debug",
        }
        return changed_settings(self.settings, changes)

    @property
    def log_file(self) -> Path:
        return self.folder / "consumer.log"

    def listen(self, timeout_s: float = 0.0) -> None:
        """Read the reports that have arrived."""
        until_s = time.monotonic() + timeout_s
        while self._mailbox is not None:
            messages = self._mailbox.read(max(0.0, until_s - time.monotonic()))
            for message in messages:
                if isinstance(message, KafkaRecord):
                    read = decode(message.value, message.headers)
                    if isinstance(read, ConsumerReport):
                        self.reports.append(read)
            if not messages and time.monotonic() >= until_s:
                return

    def wait(self, what: str, look: Callable[[], Any], timeout_s: float) -> None:
        """Read reports until `look` is true. If the consumer dies, the error quotes its log."""
        deadline = time.monotonic() + timeout_s
        while not look():
            self.listen(0.2)
            if self.process is None or not is_alive(self.process):
                text = self.log_file.read_text(encoding="utf-8", errors="replace")
                raise PenstockError(f"The consumer died:\n{text[-2000:]}")
            if time.monotonic() > deadline:
                raise PenstockError(f"Waited {timeout_s:.0f} s for {what}.")

    def command_start(self, partitions: Sequence[TopicPartition]) -> None:
        self.wait("the consumer's first report", lambda: self.reports, START_TIMEOUT_S)
        rows = tuple(
            PartitionToStart(topic=one.topic, partition=one.partition, epoch=f"1.{number}")
            for number, one in enumerate(partitions, start=1)
        )
        command = StartConsumingCommand(
            consumer_id=CONSUMER,
            incarnation=self.reports[-1].incarnation,
            controller_epoch=1,
            plan_number=1,
            partitions=rows,
        )
        encoded = encode(command, group=self.settings.lake.group)
        names = self.settings.topics.names
        # A consumer obeys only what is written under the controller's transactional id.
        leader = LeadingProducer(
            self.settings.kafka, names.transactional_id(self.settings.lake.group)
        )
        leader.send([Outgoing(names.controller, command.mailbox, encoded.value, encoded.headers)])
        leader.close()

    def wait_until_carried(self, ends: dict[TopicPartition, int], timeout_s: float) -> None:
        """Wait until a report shows every partition at its end."""

        def reached() -> bool:
            if not self.reports:
                return False
            owned = {row.topic_partition: row.next_offset or 0 for row in self.reports[-1].owned}
            return all(owned.get(one, 0) >= end for one, end in ends.items())

        self.wait("all records to be carried", reached, timeout_s)

    def end(self) -> None:
        if self.process is not None:
            send_signal(self.process, signal.SIGTERM)
