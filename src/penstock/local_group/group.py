"""Brings a whole group up on this machine, looks after it, and takes it down in order.

    with LocalGroup(settings, directory) as group:
        group.tend()                     # now and then: what died is started again

A broker and a Spark Connect server are started unless the settings name some, and started again on
their old ports and data when they die. Monitor and controller are children; consumers are started
by the controller and watch this process: whatever ends it, nothing is left. Going down: the
controller first, so that nobody replaces the consumers, then they, then the monitor, Spark and the
broker.
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
from types import TracebackType
from typing import Protocol, Self

from penstock.deployment import LocalProcesses
from penstock.deployment.launching import local_deployment
from penstock.errors import PenstockError
from penstock.kafka_io.control_topics import make_control_topics
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.warm_up import warm_up_command
from penstock.processes import ProcessIdentity, identity_of, is_alive, start_child, stop
from penstock.processes.owner import owner_as_text
from penstock.processes.restart_pace import pause_s, restarts_after
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings

STOP_GRACE_S = 20.0
SERVER_RESTART_PAUSE_S = 10.0


@dataclass(slots=True)
class _Child:
    """A process of ours that should always run."""

    name: str
    process: ProcessIdentity
    started_s: float
    restarts: int = 0


class BrokerNode(Protocol):
    @property
    def is_alive(self) -> bool: ...


class OwnBroker(Protocol):
    """A broker that this group starts for itself. The group does not know which kind it is."""

    @property
    def settings(self) -> KafkaSettings: ...
    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def nodes(self) -> Mapping[int, BrokerNode]: ...
    def restart(self, number: int) -> object: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


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
        """`flags` are the settings of the command line, for the children.

        `start_broker` starts a broker with its data in the given folder; None uses `kafka`.
        """
        self.settings = settings
        self._flags = list(flags)
        self._start_broker = start_broker
        self._embedded_spark = embedded_spark
        self._on_progress = on_progress
        self.directory = Path(settings.controller.directory).absolute()
        # Servers of our own, also for whoever wants to harm them; None when they were given.
        self.broker: OwnBroker | None = None
        self.spark_server: ConnectServer | None = None
        self._server_tried_s = 0.0
        self._parts = ExitStack()
        self._children: dict[str, _Child] = {}
        me = identity_of(os.getpid())
        if me is None:
            raise AssertionError("this process is alive")
        self._owner = owner_as_text(me)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        """Beside all else: the first consumer comes in a few seconds."""
        command = warm_up_command(master, self.settings.lake.group, self.settings.spark.tasks)
        warming = start_child(command, log_file=self.directory / "spark" / "warm-up.log")
        self._parts.callback(stop, warming, grace_s=0)

    def _use(self, section: str, value: object, option: str, text: str) -> None:
        self.settings = self.settings.model_copy(update={section: value})
        self._flags += ["--set", f"{option}={text}"]

    @property
    def deployment(self) -> LocalProcesses:
        """The same view of the consumers that the controller has."""
        return local_deployment(self.settings, self._flags, self._owner)

    def process_of(self, name: str) -> ProcessIdentity:
        """The `monitor` or the `controller`, as it runs now."""
        return self._children[name].process

    def log_of(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def repair(self) -> list[str]:
        """Start again what died, with a growing pause; says what was done."""
        restarted = self._restart_dead_servers()
        for name, child in list(self._children.items()):
            since_start_s = time.monotonic() - child.started_s
            if is_alive(child.process) or since_start_s < pause_s(child.restarts):
                continue
            stop(child.process, grace_s=0)  # it is dead: this takes it off the process table
            self._launch(name, restarts=restarts_after(child.restarts, since_start_s))
            restarted.append(f"the {name} died and was started again; its log: {self.log_of(name)}")
        return restarted

    def _restart_dead_servers(self) -> list[str]:
        """Nothing else gets far without them, so this waits until they answer again."""
        dead: list[tuple[str, Callable[[], object]]] = []
        if self.broker is not None:
            for number, node in self.broker.nodes.items():
                if not node.is_alive:
                    dead.append(("broker", partial(self.broker.restart, number)))
        server = self.spark_server
        if server is not None and server.process is not None and not is_alive(server.process):
            dead.append(("Spark server", server.start))
        if not dead or time.monotonic() - self._server_tried_s < SERVER_RESTART_PAUSE_S:
            return []
        restarted = []
        for name, restart in dead:
            try:
                restart()
            except PenstockError as error:
                restarted.append(f"the {name} died and does not come back: {error}")
            else:
                restarted.append(f"the {name} died and was started again")
        self._server_tried_s = time.monotonic()
        return restarted

    def arguments_of(self, name: str) -> list[str]:
        """What `penstock` is given to be the `monitor` or the `controller` of this group."""
        ends_with = ["--ends-with", self._owner] if name == "controller" else []
        return [name, *self._flags, *ends_with]

    def _launch(self, name: str, *, restarts: int = 0) -> None:
        if restarts == 0:
            self._on_progress(f"starting the {name}")
        command = [sys.executable, "-m", "penstock", *self.arguments_of(name)]
        process = start_child(command, log_file=self.log_of(name))
        self._children[name] = _Child(name, process, time.monotonic(), restarts)

    def stop(self) -> None:
        """Everything, in order. Safe to call twice."""
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
        self._on_progress(f"stopping {len(consumers)} consumers")
        with ThreadPoolExecutor(len(consumers)) as together:
            list(together.map(deployment.delete, consumers))

    def remove(self) -> None:
        """Forget everything that was kept in the group's directory."""
        if self._children:
            raise PenstockError("The group is still running.")
        shutil.rmtree(self.directory, ignore_errors=True)
