"""A real Apache Kafka on this machine, for the demo and for tests."""

from penstock.laboratory.broker.embedded import BrokerStartError, EmbeddedKafka, Node
from penstock.laboratory.broker.properties import BrokerPlan, Listener

__all__ = ["BrokerPlan", "BrokerStartError", "EmbeddedKafka", "Listener", "Node"]
