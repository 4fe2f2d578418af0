"""The properties file of each Kafka node, made from a plan. Pure.

Every node is broker and controller at once (KRaft), which suits a laptop. Topics are not created
automatically, and the internal topics are small so that a new cluster is ready in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

CLUSTER_ID = "cGVuc3RvY2stZW1iZWRkZQ"  # any 16 bytes in base64; the same for all nodes of a cluster
REPLICAS_MAX = 3


@dataclass(frozen=True, slots=True)
class Listener:
    """How clients connect; TLS and SASL listeners set their protocol and properties here."""

    protocol: str = "PLAINTEXT"
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodePlan:
    node_id: int
    port: int
    controller_port: int


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """A cluster to start: the number of nodes, where they listen, and the memory of each."""

    brokers: int = 1
    host: str = "127.0.0.1"
    heap_mib: int = 512
    listener: Listener = field(default_factory=Listener)
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= 9:
            raise ValueError(f"an embedded cluster has 1 to 9 brokers, not {self.brokers}")


def node_properties(
    plan: BrokerPlan, nodes: tuple[NodePlan, ...], node: NodePlan, log_directory: str
) -> dict[str, str]:
    replicas = str(min(plan.brokers, REPLICAS_MAX))
    in_sync = str(min(plan.brokers, 2))
    voters = ",".join(f"{one.node_id}@{plan.host}:{one.controller_port}" for one in nodes)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": (
            f"CLIENTS://{plan.host}:{node.port},CONTROLLER://{plan.host}:{node.controller_port}"
        ),
        "advertised.listeners": f"CLIENTS://{plan.host}:{node.port}",
        "listener.security.protocol.map": f"CLIENTS:{plan.listener.protocol},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "log.dirs": log_directory,
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "controlled.shutdown.enable": "true",
        **plan.listener.properties,
        **plan.properties,
    }


def properties_text(properties: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def log4j2_text() -> str:
    """Log to stdout, which goes to the node's log file."""
    return (
        '<Configuration status="ERROR"><Appenders><Console name="out">'
        '<PatternLayout pattern="%d{ISO8601} %p %m (%c)%n"/></Console></Appenders><Loggers>'
        '<Logger name="org.apache.kafka.clients" level="WARN"/>'
        '<Root level="INFO"><AppenderRef ref="out"/></Root></Loggers></Configuration>\n'
    )
