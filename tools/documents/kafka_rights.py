"""What each role must be allowed in Kafka: the list that docs/security.md prints.

A test gives each role exactly these and lets the group work on a broker that refuses all else; the
broker's own record of what it was asked shows that none is missing and none is too many.
"""

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from penstock.model.control_topic_names import ControlTopicNames

# What documents.examples reads.
_MARK = "<!-- not run: Kafka's own tool; the test grants the same list through a client -->"
PREFIX, GROUP, TOPICS = "<prefix>", "<group>", "<topics>"
NAMES = ControlTopicNames(PREFIX)


@dataclass(frozen=True, slots=True)
class KafkaRight:
    """One right; `resource` is a name or, with `is_prefix`, how names begin."""

    role: str
    kind: str
    resource: str
    operation: str
    reason: str
    is_prefix: bool = False

    def named(self, **names: str) -> "KafkaRight":
        """With the names of a real group in place of `<prefix>` and the like."""
        text = self.resource
        for placeholder, name in names.items():
            text = text.replace(f"<{placeholder}>", name)
        return KafkaRight(self.role, self.kind, text, self.operation, self.reason, self.is_prefix)

    def covers(self, kind: str, resource: str, operation: str) -> bool:
        """Whether it is this right that a request with that operation needs."""
        fits = resource.startswith(self.resource) if self.is_prefix else resource == self.resource
        return kind == self.kind and fits and operation == self.operation

    def binding(self, principal: str) -> AclBinding:
        pattern = ResourcePatternType.PREFIXED if self.is_prefix else ResourcePatternType.LITERAL
        kinds = {"Cluster": "BROKER", "TransactionalId": "TRANSACTIONAL_ID"}
        return AclBinding(
            ResourceType[kinds.get(self.kind, self.kind.upper())],
            self.resource,
            pattern,
            f"User:{principal}",
            "*",
            AclOperation[self.operation],
            AclPermissionType.ALLOW,
        )


def _topic(role: str, name: str, operation: str, reason: str) -> KafkaRight:
    return KafkaRight(role, "Topic", name, operation, reason)


def _group(role: str) -> KafkaRight:
    """Nobody joins these groups, but the client library asks who would look after them."""
    reason = "its readers look up a coordinator, though nobody joins these groups"
    return KafkaRight(role, "Group", "penstock-", "DESCRIBE", reason, is_prefix=True)


_SIZES = KafkaRight(
    "", "Cluster", "kafka-cluster", "DESCRIBE", "log sizes, the unit of all speeds (see below)"
)
# Read, Write and Alter bring Describe with them.
RIGHTS: tuple[KafkaRight, ...] = (
    KafkaRight(
        "controller", "Topic", f"{PREFIX}-", "CREATE", "makes the control topics", is_prefix=True
    ),
    KafkaRight(
        "controller",
        "Topic",
        f"{PREFIX}-",
        "DESCRIBE_CONFIGS",
        "checks that they can serve",
        is_prefix=True,
    ),
    _topic("controller", NAMES.controller, "ALTER", "adds mailboxes as the group grows"),
    _topic("controller", NAMES.controller, "READ", "its heartbeats, and whether another leads"),
    _topic("controller", NAMES.controller, "WRITE", "commands"),
    _topic("controller", NAMES.consumer, "READ", "what consumers tell it"),
    _topic("controller", NAMES.consumer, "WRITE", "heartbeats: what was before them has been read"),
    _topic("controller", NAMES.monitor, "READ", "write speeds"),
    _topic("controller", NAMES.query, "ALTER", "adds mailboxes as the group grows"),
    _topic("controller", NAMES.query, "WRITE", "asks consumers what they own"),
    _topic("controller", NAMES.service, "READ", "operators' requests"),
    _topic("controller", NAMES.service, "WRITE", "answers to them"),
    _topic("controller", NAMES.state, "READ", "what the last controller knew"),
    _topic("controller", NAMES.state, "WRITE", "what the next one must know, and who leads"),
    _topic("controller", NAMES.status, "WRITE", "what people see of the group"),
    _topic(
        "controller",
        NAMES.commit,
        "DESCRIBE",
        "is it there; only where consumers commit together (`lake.commits`)",
    ),
    KafkaRight(
        "controller",
        "TransactionalId",
        NAMES.transactional_id(GROUP),
        "WRITE",
        "leads alone: a second controller is fenced by this name",
    ),
    _group("controller"),
    KafkaRight("monitor", *(_SIZES.kind, _SIZES.resource, _SIZES.operation, _SIZES.reason)),
    _topic("monitor", TOPICS, "DESCRIBE", "which partitions there are, and who leads them"),
    _topic("monitor", NAMES.monitor, "READ", "begins where the last monitor stopped"),
    _topic("monitor", NAMES.monitor, "WRITE", "write speeds"),
    _group("monitor"),
    KafkaRight("consumer", *(_SIZES.kind, _SIZES.resource, _SIZES.operation, _SIZES.reason)),
    _topic("consumer", TOPICS, "READ", "carries them"),
    _topic("consumer", NAMES.controller, "READ", "commands in its mailbox"),
    _topic("consumer", NAMES.consumer, "WRITE", "events, answers and reports"),
    _topic("consumer", NAMES.query, "READ", "questions in its mailbox"),
    _topic(
        "consumer",
        NAMES.commit,
        "READ",
        "batches that it commits for others; only where they commit together (`lake.commits`)",
    ),
    _topic(
        "consumer",
        NAMES.commit,
        "WRITE",
        "batches that another commits for it; only where they commit together (`lake.commits`)",
    ),
    KafkaRight(
        "consumer",
        "TransactionalId",
        NAMES.transactional_id(GROUP),
        "DESCRIBE",
        "who leads: it obeys no other writer",
    ),
    KafkaRight("consumer", "Group", GROUP, "READ", "offsets for the tools that show lag"),
    _group("consumer"),
    _topic("operator", NAMES.service, "READ", "hears what became of a request"),
    _topic("operator", NAMES.service, "WRITE", "pause, resume, service send"),
    _topic("operator", NAMES.status, "READ", "status, history, plan and settings, from anywhere"),
    _group("operator"),
)


def _kafka_names(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))


def as_markdown() -> str:
    """The table, and the same as commands for Kafka's own tool."""
    lines = ["| role | resource | operation | for |", "| --- | --- | --- | --- |"]
    for one in RIGHTS:
        resource = f"`{one.resource}`" + (" and all that begins so" if one.is_prefix else "")
        kind = {"TransactionalId": "transactional id"}.get(one.kind, one.kind.lower())
        operation = _kafka_names(one.operation)
        lines.append(f"| {one.role} | {kind} {resource} | {operation} | {one.reason} |")
    lines += [
        "",
        "As commands, with the default names and one topic, `orders`:",
        "",
        _MARK,
        "```sh",
    ]
    lines += ['acl() { kafka-acls.sh --bootstrap-server "$BROKER" --add "$@"; }']
    return "\n".join([*lines, *_commands(), "```"]) + "\n"


def _commands() -> list[str]:
    options = {"Topic": "topic", "Group": "group", "TransactionalId": "transactional-id"}
    lines = []
    plain = [
        one.named(prefix="data-engineering", group="penstock", topics="orders") for one in RIGHTS
    ]
    of_resource = attrgetter("role", "kind", "resource", "is_prefix")
    for (role, kind, resource, is_prefix), found in groupby(plain, key=of_resource):
        operations = " ".join(f"--operation {_kafka_names(one.operation)}" for one in found)
        where = f"--{options[kind]} {resource}" if kind in options else "--cluster"
        pattern = " --resource-pattern-type prefixed" if is_prefix else ""
        lines.append(f"acl --allow-principal User:penstock-{role} {operations} {where}{pattern}")
    return lines
