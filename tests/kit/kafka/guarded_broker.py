"""A real broker with users and rights: whatever is not granted is refused, and all is recorded."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from documents.kafka_rights import KafkaRight
from kit.free_ports import free_ports
from penstock.laboratory.broker import EmbeddedKafka, embedded
from penstock.laboratory.broker.properties import BrokerPlan, log4j2_text
from penstock.settings.sections import KafkaSettings

HOST = "127.0.0.1"
_ASKED = re.compile(
    r"Principal = User:(?P<user>\w+) is (?P<answer>Allowed|Denied) operation = (?P<operation>\w+) "
    r"from host = \S+ on resource = (?P<kind>\w+):LITERAL:(?P<resource>\S+) for request = (\w+)"
)


@dataclass(frozen=True, order=True, slots=True)
class Asked:
    """What a user asked for and whether the broker allowed it."""

    user: str
    kind: str
    resource: str
    operation: str
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class GuardedBroker:
    """`kafka` is the way in without a password, for the test itself: it may do everything."""

    kafka: EmbeddedKafka
    guarded_port: int
    passwords: dict[str, str]

    @property
    def settings(self) -> KafkaSettings:
        return self.kafka.settings

    def environment(self, user: str) -> dict[str, str]:
        """How a process becomes this user."""
        properties = (
            f"security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: {user}"
        )
        return {
            "PENSTOCK_KAFKA__BOOTSTRAP_SERVERS": f"{HOST}:{self.guarded_port}",
            "PENSTOCK_KAFKA__PROPERTIES": f"{{{properties}}}",
            "PENSTOCK_KAFKA__SASL_PASSWORD": self.passwords[user],
        }

    def grant(self, rights: Sequence[KafkaRight]) -> None:
        client = AdminClient({"bootstrap.servers": self.kafka.bootstrap_servers})
        for future in client.create_acls([one.binding(one.role) for one in rights]).values():
            future.result(timeout=60)

    def asked(self) -> set[Asked]:
        (node,) = self.kafka.nodes.values()
        text = node.log.file.read_text(encoding="utf-8", errors="replace")
        return {
            Asked(m["user"], m["kind"], m["resource"], m["operation"], m["answer"] == "Allowed")
            for m in _ASKED.finditer(text)
            if m["user"] in self.passwords
        }


@contextmanager
def guarded_broker(folder: Path, users: Sequence[str]) -> Iterator[GuardedBroker]:
    """One listener for the test and the broker itself, one that asks for a name and a password."""
    port, controller_port, guarded_port = free_ports(3)
    passwords = {user: f"word-of-{user}" for user in users}
    known = " ".join(f'user_{user}="{word}"' for user, word in passwords.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    listeners = f"CLIENTS://{HOST}:{port},GUARDED://{HOST}:{guarded_port}"
    properties = {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listener.security.protocol.map": (
            "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": f"{module} required {known};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
    }
    recorded = log4j2_text().replace(
        "<Root", '<Logger name="kafka.authorizer.logger" level="DEBUG"/><Root'
    )
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(embedded, "log4j2_text", lambda: recorded)
        plan = BrokerPlan(properties=properties)
        with EmbeddedKafka(plan, data_directory=folder, port=port) as kafka:
            yield GuardedBroker(kafka, guarded_port, passwords)
