"""A Kafka broker for `many_writers.py`, in a process of its own.

Writers are forked, and the process that forks them must have no thread.
"""

import signal
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from penstock.kafka_io.control_topics import make_control_topics
from penstock.laboratory.broker import small_broker
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings, LakeSettings, TopicsSettings


def serve(said: Connection) -> None:
    """Send the broker's address once its topics are there; until this process is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        tempfile.TemporaryDirectory(prefix="many-writers-broker-") as folder,
        small_broker(Path(folder) / "kafka") as broker,
    ):
        make_control_topics(settings_for(broker.bootstrap_servers))
        said.send(broker.bootstrap_servers)
        signal.pause()


def settings_for(bootstrap_servers: str) -> Settings:
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=bootstrap_servers),
        topics=TopicsSettings(consumers_ahead=1),
        lake=LakeSettings(commits="together"),
    )
