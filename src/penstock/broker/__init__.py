"""A real Apache Kafka on this machine, for the demo and for tests."""

from penstock.broker.embedded import BrokerStartError, EmbeddedKafka, Node
from penstock.broker.properties import BrokerPlan, Listener

__all__ = ["BrokerPlan", "BrokerStartError", "EmbeddedKafka", "Listener", "Node"]
