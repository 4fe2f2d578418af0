"""Runs `penstock monitor` as a user would, and reads what it publishes."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from penstock.kafka_io.administration import Administration
from penstock.kafka_io.measurement_topic import MeasurementReader
from penstock.laboratory.broker import EmbeddedKafka
from penstock.settings.sections import TopicsSettings
from penstock.topics import control_topics


class MonitorProcess:
    def __init__(self, kafka: EmbeddedKafka, prefix: str, log_file: Path, *options: str) -> None:
        self.log_file = log_file
        command = [sys.executable, "-m", "penstock", "monitor"]
        command += ["--bootstrap-server", kafka.bootstrap_servers]
        for option in (f"topics.prefix={prefix}", "log.format=json", *options):
            command += ["--set", option]
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8")

    def terminate(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=90)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=90)

    def wait(self, timeout_s: float) -> int:
        return self._process.wait(timeout=timeout_s)


@contextmanager
def running_monitor(
    kafka: EmbeddedKafka, prefix: str, log_file: Path, *options: str
) -> Iterator[MonitorProcess]:
    process = MonitorProcess(kafka, prefix, log_file, *options)
    try:
        yield process
    finally:
        process.kill()


def make_topics(kafka: EmbeddedKafka, prefix: str) -> None:
    administration = Administration(kafka.settings)
    for topic in control_topics(TopicsSettings(prefix=prefix)):
        administration.create_topic(
            topic.name, partitions=topic.partitions, settings=topic.settings
        )


@contextmanager
def reading(kafka: EmbeddedKafka, prefix: str) -> Iterator[MeasurementReader]:
    with closing(MeasurementReader(kafka.settings, TopicsSettings(prefix=prefix))) as reader:
        yield reader
