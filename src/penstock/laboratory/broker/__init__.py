"""A real Apache Kafka on this machine, for the demo and for tests."""

from pathlib import Path

from penstock.jars.class_archive import WRITING_GRACE_S, is_trusted, written_archive
from penstock.laboratory.broker.embedded import (
    BrokerStartError,
    EmbeddedKafka,
    Node,
    broker_class_archive,
)
from penstock.laboratory.broker.properties import BrokerPlan, Listener
from penstock.processes import stop_all

__all__ = [
    "BrokerPlan",
    "BrokerStartError",
    "EmbeddedKafka",
    "Listener",
    "Node",
    "has_broker_archive",
    "small_broker",
    "write_broker_archive",
]


def small_broker(data_directory: Path) -> EmbeddedKafka:
    """One broker for one group on this machine, with its data in the given folder."""
    return EmbeddedKafka(BrokerPlan(heap_mib=512), data_directory=data_directory)


def has_broker_archive() -> bool:
    return is_trusted(broker_class_archive())


def write_broker_archive() -> Path:
    """Write the archive of Kafka's classes: a broker starts and ends."""
    archive = broker_class_archive()
    with written_archive(archive) as partial, EmbeddedKafka(writes_archive=partial) as kafka:
        stop_all([node.process for node in kafka.nodes.values()], grace_s=WRITING_GRACE_S)
    return archive
