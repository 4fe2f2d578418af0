"""Starts a whole group on this machine, restarts what dies, and shuts it down.

    with LocalGroup(settings, flags, ...) as group:
        group.repair()                   # call it regularly: it restarts what died

It starts a broker and a Spark Connect server unless the settings name them, and restarts them on
their old ports and data, before anything that needs them: no consumer starts meanwhile. Monitor and
controller are child processes. The controller starts the
consumers, which watch this process and end with it. Shutdown order: the controller first, so that
it does not replace consumers; then consumers, monitor, Spark and broker.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from penstock.deployment import LocalProcesses
from penstock.deployment.launching import local_deployment
from penstock.deployment.local_processes import SERVERS_RESTARTING_NAME
from penstock.errors import PenstockError
from penstock.kafka_io.control_topics import make_control_topics
from penstock.model.sentences import counted
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.warm_up import warm_up_command
from penstock.processes import (
    STOP_GRACE_S,
    ProcessIdentity,
    identity_of,
    is_alive,
    start_child,
    stop,
)
from penstock.processes.owner import owner_as_text
from penstock.processes.restart_pace import pause_s, restarts_after
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings

SERVER_RESTART_PAUSE_S = 10.0


@dataclass(slots=True)
class _Child:
    """A child process that should always run."""

    name: str
    process: ProcessIdentity
    started_s: float
    restarts: int = 0


class BrokerNode(Protocol):
    @property
    def is_alive(self) -> bool: ...


class OwnBroker(Protocol):
    """The interface of a broker that the group starts itself."""

    @property
    def settings(self) -> KafkaSettings: ...
    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def nodes(self) -> Mapping[int, BrokerNode]: ...
    def restart(self, number: int) -> object: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class LocalGroup:
    def __init__(
        self,
        settings: Settings,
        flags: Sequence[str] = (),
        *,
        start_broker: Callable[[Path], OwnBroker] | None,
        embedded_spark: bool,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`flags` are the settings of the command line; they are passed on to the children.

        `start_broker` starts a broker with its data in a folder; None uses the broker in `kafka`.
        """
        self.settings = settings
        self._flags = list(flags)
        self._start_broker = start_broker
        self._embedded_spark = embedded_spark
        self._on_progress = on_progress
        self.directory = Path(settings.controller.directory).absolute()
        # The servers this group started; None when the settings name others.
        self.broker: OwnBroker | None = None
        self.spark_server: ConnectServer | None = None
        self._server_tried_s: dict[str, float] = {}
        self._parts = ExitStack()
        self._children: dict[str, _Child] = {}
        me = identity_of(os.getpid())
        if me is None:
            raise AssertionError("this process is alive")
        self._owner = owner_as_text(me)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        try:
            self._start_parts()
        except BaseException:
            self.stop()
            raise
        return self

    def _start_parts(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._servers_restarting.unlink(missing_ok=True)  # left by a group that was killed
        if self._start_broker is not None:
            self._on_progress("starting a broker")
            kafka = self._parts.enter_context(self._start_broker(self.directory / "broker"))
            self.broker = kafka
            self._use("kafka", kafka.settings, "kafka.bootstrap_servers", kafka.bootstrap_servers)
        self._on_progress(f"broker at {self.settings.kafka.bootstrap_servers}")
        for line in make_control_topics(self.settings):
            self._on_progress(line)
        if self._embedded_spark:
            self._on_progress("starting a Spark Connect server")
            server = self._parts.enter_context(
                ConnectServer(self.settings.spark, folder=self.directory / "spark")
            )
            self.spark_server = server
            spark = self.settings.spark.model_copy(update={"master": server.master})
            self._use("spark", spark, "spark.master", server.master)
            self._warm_up(server.master)
        self._on_progress(f"Spark at {self.settings.spark.master}")
        self._parts.callback(self._stop_child, "monitor")
        self._launch("monitor")
        self._parts.callback(self._stop_consumers)
        self._parts.callback(self._stop_child, "controller")
        self._launch("controller")

    def _warm_up(self, master: str) -> None:
        """In the background: the first consumer needs Spark in a few seconds."""
        command = warm_up_command(master, self.settings.lake.group, self.settings.spark.tasks)
        warming = start_child(command, log_file=self.directory / "spark" / "warm-up.log")
        self._parts.callback(stop, warming, grace_s=0)

    def _use(self, section: str, value: object, option: str, text: str) -> None:
        self.settings = self.settings.model_copy(update={section: value})
        self._flags += ["--set", f"{option}={text}"]

    @property
    def deployment(self) -> LocalProcesses:
        """The consumers, as the controller sees them."""
        return local_deployment(self.settings, self._flags, self._owner)

    def process_of(self, name: str) -> ProcessIdentity:
        """The present process of the `monitor` or the `controller`."""
        return self._children[name].process

    def log_of(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def repair(self) -> list[str]:
        """Restart what died, with growing pauses, and return a line for each."""
        restarted = self._restart_dead_servers()
        for name, child in list(self._children.items()):
            since_start_s = time.monotonic() - child.started_s
            if is_alive(child.process) or since_start_s < pause_s(child.restarts):
                continue
            stop(child.process, grace_s=0)  # it is dead: this removes it from the process table
            self._launch(name, restarts=restarts_after(child.restarts, since_start_s))
            restarted.append(f"the {name} died and was started again; its log: {self.log_of(name)}")
        return restarted

    def _restart_dead_servers(self) -> list[str]:
        """Waits until they answer: nothing else works without them."""
        dead: dict[str, Callable[[], object]] = {}
        if self.broker is not None:
            nodes = self.broker.nodes
            for number, node in nodes.items():
                if not node.is_alive:
                    name = "broker" if len(nodes) == 1 else f"broker {number}"
                    dead[name] = partial(self.broker.restart, number)
        server = self.spark_server
        if server is not None and server.process is not None and not is_alive(server.process):
            dead["Spark server"] = server.start
        due = {name: restart for name, restart in dead.items() if self._may_be_tried(name)}
        if not due:
            return []
        self._servers_restarting.touch()
        try:
            return [self._restarted(name, restart) for name, restart in due.items()]
        finally:
            self._servers_restarting.unlink(missing_ok=True)

    def _may_be_tried(self, name: str) -> bool:
        tried_s = self._server_tried_s.get(name)
        return tried_s is None or time.monotonic() - tried_s >= SERVER_RESTART_PAUSE_S

    def _restarted(self, name: str, restart: Callable[[], object]) -> str:
        try:
            restart()
        except PenstockError as error:
            return f"the {name} died and could not be restarted: {error}"
        else:
            return f"the {name} died and was started again"
        finally:
            self._server_tried_s[name] = time.monotonic()

    @property
    def _servers_restarting(self) -> Path:
        return self.directory / SERVERS_RESTARTING_NAME

    def arguments_of(self, name: str) -> list[str]:
        """The arguments of `penstock` for this group's `monitor` or `controller`."""
        ends_with = ["--ends-with", self._owner] if name == "controller" else []
        return [name, *self._flags, *ends_with]

    def _launch(self, name: str, *, restarts: int = 0) -> None:
        if restarts == 0:
            self._on_progress(f"starting the {name}")
        command = [sys.executable, "-m", "penstock", *self.arguments_of(name)]
        process = start_child(command, log_file=self.log_of(name))
        self._children[name] = _Child(name, process, time.monotonic(), restarts)

    def stop(self) -> None:
        """Shut everything down. Safe to call twice."""
        self._parts.close()

    def _stop_child(self, name: str) -> None:
        child = self._children.pop(name, None)
        if child is not None:
            self._on_progress(f"stopping the {name}")
            stop(child.process, grace_s=STOP_GRACE_S)

    def _stop_consumers(self) -> None:
        deployment = self.deployment
        consumers = list(deployment.list_consumers())
        if not consumers:
            return
        self._on_progress(f"stopping {counted(len(consumers), 'consumer')}")
        with ThreadPoolExecutor(len(consumers)) as together:
            list(together.map(deployment.delete, consumers))

    def remove(self) -> None:
        """Remove the group's directory with all its state."""
        if self._children:
            raise PenstockError("The group is still running.")
        shutil.rmtree(self.directory, ignore_errors=True)
