"""A real Apache Kafka on this machine, for the demo and for tests."""

from pathlib import Path

from penstock.laboratory.broker.embedded import BrokerStartError, EmbeddedKafka, Node
from penstock.laboratory.broker.properties import BrokerPlan, Listener

__all__ = ["BrokerPlan", "BrokerStartError", "EmbeddedKafka", "Listener", "Node", "small_broker"]


def small_broker(data_directory: Path) -> EmbeddedKafka:
    """One broker for one group on this machine, with its data in the given folder."""
    return EmbeddedKafka(BrokerPlan(heap_mib=512), data_directory=data_directory)
