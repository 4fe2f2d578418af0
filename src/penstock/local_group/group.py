"""Starts a whole group on this machine, restarts what dies, and shuts it down.

    with LocalGroup(settings, flags, ...) as group:
        group.repair()                   # call it regularly: it restarts what died

It starts a broker and a Spark Connect server unless the settings name them, and restarts them on
their old ports and data, before anything that needs them: no consumer starts meanwhile. Monitor and
controller are child processes, which need the broker alone: they do not wait for a Spark server
that is starting. The controller starts the consumers, which watch this process and end with it.
Shutdown order: the controller first, so that it does not replace consumers; then consumers,
monitor, Spark and broker.

A folder has one such group: a second one is refused at once, and touches nothing of the first. What
a group did not start itself it does not stop.

Children end with the thread that started them: all calls are made by one thread.
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

from penstock.controller.process.prefix_holder import PrefixTakenError, require_free_prefix
from penstock.deployment import LocalProcesses
from penstock.deployment.launching import local_deployment
from penstock.deployment.local_processes import SERVERS_RESTARTING_NAME
from penstock.deployment.trial_run import run_trial
from penstock.errors import PenstockError
from penstock.extras import Extra, has_extra, install_command
from penstock.kafka_io.control_topics import make_control_topics
from penstock.local_group.page_address import free_address
from penstock.local_group.start_checks import as_flags, known_topics, try_imports, try_out
from penstock.local_group.taken_folder import take_folder
from penstock.model.sentences import counted
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.pass_through_tables import all_pass_through
from penstock.pipeline.trial import require_folder
from penstock.pipeline.warm_up import warm_up_command, warm_up_environment
from penstock.processes import (
    STOP_GRACE_S,
    ProcessIdentity,
    exit_code_of,
    identity_of,
    is_alive,
    start_child,
    stop,
)
from penstock.processes.owner import owner_as_text
from penstock.processes.restart_pace import RestartPaces, pause_s, restarts_after
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings
from penstock.settings.snapshot import CURRENT, FOLDER, replace_file
from penstock.state_directory import StateDirectory

_SPARK = "Spark server"
_RESTARTED = "the {name} died and was started again"


class StartInterruptedError(PenstockError):
    """Somebody ended the command while it was starting."""

    exit_code = 130


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
    def restart(self, number: int, meanwhile: Callable[[], None], /) -> object: ...
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
        snapshot: str | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        with_page: bool = False,
    ) -> None:
        """`flags` are the settings of the command line; they are passed on to the children.

        `start_broker` starts a broker with its data in a folder; None uses the broker in `kafka`.
        `snapshot` is a copy of the settings, with which monitor and controller are started: they
        keep it whatever happens to the file. None leaves them to find the file. `is_stopped` says
        whether to give the start up: it takes a while, and Ctrl-C may come meanwhile. `with_page`
        starts the live page beside the group.
        """
        self.settings = settings
        self._flags = list(flags)
        self._snapshot = snapshot
        self._is_stopped = is_stopped
        self._with_page = with_page
        self._page_flags: list[str] = []
        # What one consumer carries of topics, in bytes a second, as the trial has shown.
        self._calibrated: dict[str, float] = {}
        self._start_broker = start_broker
        self._embedded_spark = embedded_spark
        self._on_progress = on_progress
        self.directory = Path(settings.controller.directory).absolute()
        # The servers this group started; None when the settings name others.
        self.broker: OwnBroker | None = None
        self.spark_server: ConnectServer | None = None
        # It was begun again and does not answer yet.
        self.is_spark_starting = False
        self._warming: ProcessIdentity | None = None
        self._server_paces = RestartPaces()
        self._parts = ExitStack()
        self._held: StateDirectory | None = None
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
        require_folder(self.settings.lake)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._held = take_folder(self._parts, self.directory)
        if self._snapshot is not None:
            file = replace_file(self.directory / FOLDER / CURRENT, self._snapshot)
            self._flags = ["--settings", str(file), *self._flags]
        self._servers_restarting.unlink(missing_ok=True)  # left by a group that was killed
        if self._start_broker is not None:
            self._on_progress("starting a broker")
            kafka = self._parts.enter_context(self._start_broker(self.directory / "broker"))
            self.broker = kafka
            self._use("kafka", kafka.settings, "kafka.bootstrap_servers", kafka.bootstrap_servers)
        self._on_progress(f"broker at {self.settings.kafka.bootstrap_servers}")
        require_free_prefix(self.settings)
        trial = partial(run_trial, timeout_s=self.settings.controller.trial_timeout)
        if self._embedded_spark:
            wanted = self._require_wanted
            try_imports(trial, self.settings, self._flags, self._on_progress, wanted)
            self._on_progress("starting a Spark Connect server")
            quick, folder = all_pass_through(self.settings), self.directory / "spark"
            server = ConnectServer(self.settings.spark, folder=folder, compiles_once=quick)
            self.spark_server = self._parts.enter_context(server)
            spark = self.settings.spark.model_copy(update={"master": server.master})
            self._use("spark", spark, "spark.master", server.master)
            self._parts.callback(self._end_warm_up)
            self._warm_up(server.master)
        self._on_progress(f"Spark at {self.settings.spark.master}")
        self._calibrated = try_out(
            trial,
            self._flags,
            self._on_progress,
            self._require_wanted,
            calibrates=self.settings.packing.is_capacity_measured,
            known=known_topics(self.settings),
        )
        for line in make_control_topics(self.settings):
            self._on_progress(line)
        self._parts.callback(self._stop_child, "monitor")
        self._launch("monitor")
        self._parts.callback(self._stop_consumers)
        self._parts.callback(self._stop_child, "controller")
        self._launch("controller")
        if self._with_page:
            self._start_page()

    def _start_page(self) -> None:
        """The group is led without it, so what it lacks is only said."""
        if not has_extra(Extra.PAGE):
            self._on_progress(f"without the live page: it needs {install_command(Extra.PAGE)}")
            return
        address = free_address(self.settings.page)
        self._page_flags = ["--set", f"page.address={address}"]
        self._parts.callback(self._stop_child, "page")
        self._launch("page")
        scheme = "https" if self.settings.page.certificate_file else "http"
        self._on_progress(f"the live page: {scheme}://{address}/")

    def _require_wanted(self) -> None:
        if self._is_stopped():
            raise StartInterruptedError("Interrupted before the group was up; it was not started.")

    def _warm_up(self, master: str) -> None:
        """In the background: the first consumer needs Spark in a few seconds."""
        self._end_warm_up()
        command = warm_up_command(master, self.settings.lake.group, self.settings.spark.tasks)
        self._warming = start_child(
            command,
            log_file=self.directory / "spark" / "warm-up.log",
            environment=warm_up_environment(self.settings.spark),
        )

    def _end_warm_up(self) -> None:
        if self._warming is not None:
            stop(self._warming, grace_s=0)
            self._warming = None

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
        """Restart what died, with growing pauses, and return a line for each.

        Waits for a broker, which everything needs, but not for Spark: call it again.
        """
        restarted = self._restart_dead_servers()
        if self._is_without_broker:
            return restarted
        for name, child in list(self._children.items()):
            since_start_s = time.monotonic() - child.started_s
            if is_alive(child.process) or since_start_s < pause_s(child.restarts):
                continue
            if exit_code_of(child.process) == PrefixTakenError.exit_code:
                require_free_prefix(self.settings)  # taking turns with the other helps nobody
            stop(child.process, grace_s=0)  # it is dead: this removes it from the process table
            self._launch(name, restarts=restarts_after(child.restarts, since_start_s))
            restarted.append(f"the {name} died and was started again; its log: {self.log_of(name)}")
        return restarted

    def _restart_dead_servers(self) -> list[str]:
        """Spark is begun first, or while the broker is waited for if it dies only then."""
        told = self._begin_spark()
        brokers = self._dead_brokers(lambda: told.extend(self._begin_spark()))
        if brokers or self.is_spark_starting:
            self._servers_restarting.touch()
        try:
            restarted = [self._restarted(name, start) for name, start in brokers.items()]
            return [*told, *restarted, *self._look_at_spark()]
        finally:
            if not self.is_spark_starting:
                self._servers_restarting.unlink(missing_ok=True)

    def _dead_brokers(self, meanwhile: Callable[[], None]) -> dict[str, Callable[[], object]]:
        """By name: how to start each that is due again; `meanwhile` is done until it answers."""
        if self.broker is None:
            return {}
        nodes = self.broker.nodes
        return {
            name: partial(self.broker.restart, number, meanwhile)
            for number, node in nodes.items()
            if not node.is_alive
            and self._may_be_tried(name := "broker" if len(nodes) == 1 else f"broker {number}")
        }

    @property
    def _is_without_broker(self) -> bool:
        return self.broker is not None and not any(
            node.is_alive for node in self.broker.nodes.values()
        )

    def _begin_spark(self) -> list[str]:
        server = self.spark_server
        if server is None or self.is_spark_starting or not self._may_be_tried(_SPARK):
            return []
        if server.process is None or is_alive(server.process):
            return []
        try:
            server.begin()
        except PenstockError as error:
            return [self._not_restarted(_SPARK, error)]
        self.is_spark_starting = True
        return []

    def _look_at_spark(self) -> list[str]:
        server = self.spark_server
        if server is None or not self.is_spark_starting:
            return []
        try:
            if not server.is_ready():
                return []
        except PenstockError as error:
            self.is_spark_starting = False
            return [self._not_restarted(_SPARK, error)]
        self.is_spark_starting = False
        self._server_paces.tried(_SPARK, time.monotonic())
        self._warm_up(server.master)
        return [_RESTARTED.format(name=_SPARK)]

    def _may_be_tried(self, name: str) -> bool:
        return self._server_paces.may_start(name, time.monotonic())

    def _restarted(self, name: str, restart: Callable[[], object]) -> str:
        try:
            restart()
        except PenstockError as error:
            return self._not_restarted(name, error)
        self._server_paces.tried(name, time.monotonic())
        return _RESTARTED.format(name=name)

    def _not_restarted(self, name: str, error: PenstockError) -> str:
        self._server_paces.tried(name, time.monotonic())
        return f"the {name} died and could not be restarted: {error}"

    @property
    def _servers_restarting(self) -> Path:
        return self.directory / SERVERS_RESTARTING_NAME

    def arguments_of(self, name: str) -> list[str]:
        """The arguments of `penstock` for this group's `monitor`, `controller` or `page`."""
        known = as_flags(self._calibrated)
        own = {"controller": ["--ends-with", self._owner, *known], "page": self._page_flags}
        return [name, *self._flags, *own.get(name, [])]

    def _launch(self, name: str, *, restarts: int = 0) -> None:
        if restarts == 0:
            self._on_progress(f"starting the {name}")
        command = [sys.executable, "-m", "penstock", *self.arguments_of(name)]
        process = start_child(command, log_file=self.log_of(name))
        self._children[name] = _Child(name, process, time.monotonic(), restarts)

    def stop(self) -> None:
        """Shut everything down. Safe to call twice."""
        if self._held is not None:
            self._held.say_ending()  # `penstock status` would take it for a start
        self._parts.close()

    def _stop_child(self, name: str) -> None:
        child = self._children.pop(name, None)
        if child is not None:
            self._on_progress(f"stopping the {name}")
            stop(child.process, grace_s=STOP_GRACE_S)

    def _stop_consumers(self) -> None:
        deployment = self.deployment
        consumers = deployment.started_here()
        others = len(deployment.list_consumers()) - len(consumers)
        if others:
            self._on_progress(
                f"left running: {counted(others, 'consumer')} that this command did not start"
            )
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
