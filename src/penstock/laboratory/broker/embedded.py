"""Starts, stops, kills and restarts a real Kafka cluster on free loopback ports.

    with EmbeddedKafka() as kafka:
        kafka.bootstrap_servers

A node is ready when it answers with the metadata of the whole cluster. Nodes end with the process
that started them, even if it is killed, unless `detached` (for `penstock broker start`). If a node
fails to start, the error quotes its log and nothing is left running.
"""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from penstock.errors import PenstockError, UnreachableError
from penstock.jars import JarSet, classpath, jar_paths
from penstock.jars.class_archive import class_archive, options_to_use, options_to_write
from penstock.jars.java import find_java
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker.properties import (
    CLUSTER_ID,
    BrokerPlan,
    NodePlan,
    log4j2_text,
    node_properties,
    properties_text,
)
from penstock.model.sentences import counted
from penstock.processes import (
    STOP_GRACE_S,
    LogLines,
    ProcessIdentity,
    is_alive,
    send_signal,
    start_child,
    start_detached,
    stop_all,
)
from penstock.settings.sections import KafkaSettings

# Long enough for a busy machine. No setting: who runs a group of weight has a Kafka of their own.
START_TIMEOUT_S = 300.0
PORT_ATTEMPTS = 3
QUOTED_LINES = 12
_LOOK_AGAIN_S = 0.1


class BrokerStartError(PenstockError):
    """The broker did not come up; the message quotes its log."""


@dataclass(frozen=True, slots=True)
class Node:
    """One running Kafka process."""

    plan: NodePlan
    process: ProcessIdentity
    log: LogLines

    @property
    def is_alive(self) -> bool:
        return is_alive(self.process)


def broker_class_archive() -> Path:
    """Where the archive of Kafka's classes is, or would be."""
    return class_archive("broker", find_java().path, jar_paths(JarSet.BROKER))


class EmbeddedKafka:
    def __init__(
        self,
        plan: BrokerPlan | None = None,
        *,
        data_directory: Path | None = None,
        port: int | None = None,
        detached: bool = False,
        on_progress: Callable[[str], None] = lambda _: None,
        writes_archive: Path | None = None,
    ) -> None:
        """`writes_archive`: the archive of Kafka's classes that it writes when it ends."""
        self.plan = plan or BrokerPlan()
        self._writes_archive = writes_archive
        self._given_directory = data_directory
        self._port = port
        self._detached = detached
        self._on_progress = on_progress
        self.nodes: dict[int, Node] = {}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        nodes = sorted(self.nodes.values(), key=lambda node: node.plan.node_id)
        return ",".join(f"{self.plan.host}:{node.plan.port}" for node in nodes)

    @property
    def settings(self) -> KafkaSettings:
        return KafkaSettings(bootstrap_servers=self.bootstrap_servers, insecure=True)

    @property
    def is_temporary(self) -> bool:
        return self._given_directory is None

    def start(self) -> Self:
        """Start every node; on any failure nothing is left running."""
        self._java = find_java().path
        self._classpath = classpath(JarSet.BROKER)
        self._archive_options = options_to_use(broker_class_archive())
        self.directory = self._make_directory()
        attempts = 1 if self._port is not None else PORT_ATTEMPTS
        for attempt in range(1, attempts + 1):
            try:
                self._start_all(self._choose_ports())
            except _PortTakenError as taken:
                self._abandon()
                if attempt == attempts:
                    raise BrokerStartError(str(taken)) from None
            except BaseException:
                self._abandon(remove_data=True)
                raise
            else:
                return self
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _make_directory(self) -> Path:
        try:
            if self._given_directory is None:
                return Path(tempfile.mkdtemp(prefix="penstock-broker-"))
            self._given_directory.mkdir(parents=True, exist_ok=True)
            probe = self._given_directory / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise BrokerStartError(
                f"The data directory {self._given_directory} cannot be written: {error.strerror}.",
                remedy="Give rights to it or name another with --data-dir.",
            ) from error
        return self._given_directory.absolute()

    def _choose_ports(self) -> tuple[NodePlan, ...]:
        if self._port is not None:
            for offset in range(self.plan.brokers):
                _require_free(self.plan.host, self._port + offset)
        free = _free_ports(self.plan.host, 2 * self.plan.brokers)
        return tuple(
            NodePlan(
                node_id=index + 1,
                port=free[2 * index] if self._port is None else self._port + index,
                controller_port=free[2 * index + 1],
            )
            for index in range(self.plan.brokers)
        )

    def _start_all(self, plans: tuple[NodePlan, ...]) -> None:
        self._plans = plans
        self._on_progress(f"formatting storage for {counted(len(plans), 'broker')}")
        formatting = [(plan, self._format(plan)) for plan in plans]
        for plan, process in formatting:
            output, _ = process.communicate(timeout=START_TIMEOUT_S)
            if process.returncode != 0:
                raise BrokerStartError(
                    f"Kafka could not format its storage in {self._node_directory(plan)}:\n"
                    + _last_lines(output.decode(errors="replace"))
                )
        if self._writes_archive is not None:  # the broker itself, not what formats its storage
            self._archive_options = options_to_write(self._writes_archive)
        for plan in plans:
            self._launch(plan)
        self._on_progress("waiting for the broker to answer")
        self.wait_until_ready()

    def _node_directory(self, plan: NodePlan) -> Path:
        return self.directory / f"node-{plan.node_id}"

    def _format(self, plan: NodePlan) -> subprocess.Popen[bytes]:
        directory = self._node_directory(plan)
        directory.mkdir(exist_ok=True)
        properties = node_properties(self.plan, self._plans, plan, str(directory / "log"))
        (directory / "server.properties").write_text(properties_text(properties), encoding="utf-8")
        (directory / "log4j2.xml").write_text(log4j2_text(), encoding="utf-8")
        command = self._java_command(plan, "kafka.tools.StorageTool", heap_mib=128)
        arguments = ["format", "--ignore-formatted", "-t", CLUSTER_ID, "-c", "server.properties"]
        return subprocess.Popen(
            [*command, *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _java_command(self, plan: NodePlan, main: str, *, heap_mib: int) -> list[str]:
        directory = self._node_directory(plan)
        return [
            self._java,
            f"-Xmx{heap_mib}m",
            "-XX:+UseSerialGC",
            # Compile once, and quickly: such a broker lives for minutes (decision 0190).
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            *self._archive_options,
            f"-Dlog4j2.configurationFile={directory / 'log4j2.xml'}",
            *("-cp", self._classpath, main),
        ]

    def _launch(self, plan: NodePlan) -> None:
        directory = self._node_directory(plan)
        log_file = directory / "broker.log"
        command = self._java_command(plan, "kafka.Kafka", heap_mib=self.plan.heap_mib)
        log = LogLines.from_now(log_file)
        start = start_detached if self._detached else start_child
        process = start([*command, str(directory / "server.properties")], log_file=log_file)
        self.nodes[plan.node_id] = Node(plan, process, log)

    def wait_until_ready(
        self,
        *,
        timeout_s: float = START_TIMEOUT_S,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Wait until every node answers with the whole cluster's metadata."""
        deadline = time.monotonic() + timeout_s
        for node in list(self.nodes.values()):
            address = f"{self.plan.host}:{node.plan.port}"
            alone = KafkaSettings(bootstrap_servers=address, insecure=True)
            while not self._answers(alone):
                self._require_alive(node)
                if time.monotonic() > deadline:
                    raise BrokerStartError(
                        f"The broker did not answer within {timeout_s:.0f} s." + _quoted(node.log)
                    )
                meanwhile()
                time.sleep(_LOOK_AGAIN_S)  # there is no notification to wait for

    def _answers(self, kafka: KafkaSettings) -> bool:
        port = int(kafka.bootstrap_servers.rpartition(":")[2])
        if not _is_listening(self.plan.host, port):
            return False  # cheaper than starting a client
        try:
            cluster = Administration(kafka).cluster(timeout_s=2)
        except UnreachableError:
            return False
        return len(cluster.broker_ids) >= sum(node.is_alive for node in self.nodes.values())

    def _require_alive(self, node: Node) -> None:
        if node.is_alive:
            return
        if "Address already in use" in node.log.text():
            raise _PortTakenError(f"Port {node.plan.port} was taken.{_quoted(node.log)}")
        raise BrokerStartError(f"The broker died while starting.{_quoted(node.log)}")

    def kill(self, node_id: int) -> None:
        """Kill a node with SIGKILL, like a power cut."""
        send_signal(self.nodes[node_id].process, signal.SIGKILL)
        stop_all([self.nodes[node_id].process], grace_s=STOP_GRACE_S)

    def pause(self, node_id: int) -> None:
        send_signal(self.nodes[node_id].process, signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        send_signal(self.nodes[node_id].process, signal.SIGCONT)

    def restart(self, node_id: int, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Restart a dead node on its old port and data; `meanwhile` is called while it starts."""
        self._launch(self.nodes[node_id].plan)
        self.wait_until_ready(meanwhile=meanwhile)

    def stop(self) -> None:
        """Stop every node and remove temporary data. Safe to call twice."""
        self._abandon(remove_data=True)

    def _abandon(self, *, remove_data: bool = False) -> None:
        stop_all([node.process for node in self.nodes.values()], grace_s=STOP_GRACE_S)
        self.nodes = {}
        if remove_data and self.is_temporary:
            shutil.rmtree(self.directory, ignore_errors=True)


class _PortTakenError(Exception):
    """Another process took the port between our check and the broker's start."""


def _free_ports(host: str, count: int) -> list[int]:
    """Ports that are free now, all bound at once so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((host, 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _require_free(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BrokerStartError(
                f"Port {port} on {host} cannot be used: {error.strerror}.",
                remedy="Name another with --port, or leave it out to take a free one.",
            ) from error


def _is_listening(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


def _last_lines(text: str) -> str:
    """The last lines of a log, without stack frames."""
    lines = [line for line in text.splitlines() if not line.startswith("\tat ")]
    return "\n".join(f"    {line}" for line in lines[-QUOTED_LINES:])


def _quoted(log: LogLines) -> str:
    text = log.text()
    return f" Its log ends:\n{_last_lines(text)}" if text else " It wrote no log."
