"""Does what a fault says to the live group: signals to processes, changes of topics."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock.deployment import DeploymentError
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.campaign.faults import SERVERS, Fault, Harm, Injected, Part
from penstock.laboratory.campaign.producers import Producers, Style
from penstock.local_group import LocalGroup
from penstock.processes import ProcessIdentity, identity_of, is_alive, send_signal

# How long a fault waits for something to harm, and for a server to come back.
PATIENCE_S = 180.0
LOOK_EVERY_S = 0.1
_SIGNALS = {Harm.KILL: signal.SIGKILL, Harm.TERMINATE: signal.SIGTERM}


class NothingToHarmError(PenstockError):
    """A fault found nothing to harm in time."""


class Injection:
    """Each fault runs on a thread of its own, because some of them last."""

    def __init__(
        self,
        group: LocalGroup,
        producers: Producers,
        made_style: Style,
        styles: dict[str, Style],
        now_s: Callable[[], float],
    ) -> None:
        self._group = group
        self._producers = producers
        self._made_style = made_style
        self._styles = styles
        self._now_s = now_s
        # Servers that answer, as the thread that restarts them has seen last.
        self._answering: dict[Part, ProcessIdentity] = {}
        self._harmed: dict[Fault, ProcessIdentity] = {}
        # Set when the campaign ends before its time: nothing more is harmed.
        self.is_over = threading.Event()

    def note_servers(self) -> None:
        """Called after every repair: what it has started again answers, or still starts."""
        for part in SERVERS:
            process = self._server(part)
            is_starting = part is Part.SPARK_SERVER and self._group.is_spark_starting
            if process is not None and is_alive(process) and not is_starting:
                self._answering[part] = process

    def do(self, fault: Fault) -> Injected:
        if fault.part is Part.TOPIC:
            return self._change_topic(fault)
        process, consumer = self._found(fault)
        at_s = over_s = self._now_s()
        if fault.harm is Harm.PAUSE:
            send_signal(process, signal.SIGSTOP)
            self.is_over.wait(fault.for_s)
            send_signal(process, signal.SIGCONT)
            over_s = self._now_s()
        else:
            send_signal(process, _SIGNALS[fault.harm])
        if fault.part in SERVERS and fault.harm is not Harm.PAUSE:
            self._harmed[fault] = process
        return Injected(fault, at_s, over_s, over_s, consumer)

    def when_back(self, injected: Injected) -> Injected:
        """Wait until a server that was killed answers again; others are back at once."""
        harmed = self._harmed.get(injected.fault)
        if harmed is None:
            return injected
        deadline_s = time.monotonic() + PATIENCE_S
        while self._answering.get(injected.fault.part) == harmed and time.monotonic() < deadline_s:
            if self.is_over.wait(LOOK_EVERY_S):
                break
        return replace(injected, back_s=self._now_s())

    def _found(self, fault: Fault) -> tuple[ProcessIdentity, int | None]:
        """Wait until there is such a process: it may be dead from the fault before."""
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s and not self.is_over.is_set():
            found = self._candidates(fault.part)
            if found:
                return found[int(fault.pick * len(found))]
            time.sleep(LOOK_EVERY_S)
        raise NothingToHarmError(f"There was no {fault.part} to harm.")

    def _candidates(self, part: Part) -> list[tuple[ProcessIdentity, int | None]]:
        if part is Part.CONSUMER:
            return [(process, number) for number, process in living_consumers(self._group).items()]
        if part is Part.SPARK_WORKER:
            server = self._server(Part.SPARK_SERVER)
            workers = [] if server is None else spark_workers(server)
            return [(process, None) for process in workers]
        if part in SERVERS:
            # One that does not answer yet is still down: harming it again is no new fault.
            process = self._answering.get(part)
        else:
            process = self._group.process_of(part.value)
        return [(process, None)] if process is not None and is_alive(process) else []

    def _server(self, part: Part) -> ProcessIdentity | None:
        if part is Part.SPARK_SERVER:
            return None if self._group.spark_server is None else self._group.spark_server.process
        broker = self._group.broker
        if not isinstance(broker, EmbeddedKafka):
            raise PenstockError("A campaign harms only a broker that it started itself.")
        return next(iter(broker.nodes.values())).process

    def _change_topic(self, fault: Fault) -> Injected:
        """Asked for again until the broker does it."""
        topic = fault.topic
        if fault.harm is Harm.DELETE:
            self._producers.stop_topic(topic)
            self._styles.pop(topic)
            self._until_done(lambda one: one.delete_topic(topic), topic, is_there=False)
        elif fault.harm is Harm.MAKE:
            count = fault.partitions
            self._until_done(lambda one: one.create_topic(topic, partitions=count), topic)
            self._styles[topic] = self._made_style
            self._producers.start(topic, range(count), self._made_style)
        else:
            before = self._counts().get(topic, 0)
            self._until_done(lambda one: one.grow_topic(topic, fault.partitions), topic)
            style = self._styles[topic]
            self._producers.start(topic, range(before, fault.partitions), style)
        at_s = self._now_s()
        return Injected(fault, at_s, at_s, at_s)

    def _counts(self) -> dict[str, int]:
        found: dict[str, int] = {}

        def look(administration: Administration) -> None:
            found.update(administration.cluster().partition_counts)

        self._until_done(look, "")
        return found

    def _until_done(
        self, change: Callable[[Administration], object], topic: str, *, is_there: bool = True
    ) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                administration = Administration(self._group.settings.kafka)
                if is_there or topic in administration.cluster().partition_counts:
                    change(administration)
            except PenstockError:
                if time.monotonic() > deadline_s or self.is_over.wait(LOOK_EVERY_S):
                    raise
            else:
                return


def living_consumers(group: LocalGroup) -> dict[int, ProcessIdentity]:
    deployment = group.deployment
    found = {}
    for number in deployment.list_consumers():
        try:
            process = deployment.process_of(number)
        except DeploymentError:
            continue  # deleted meanwhile
        if is_alive(process):
            found[int(number)] = process
    return found


def spark_workers(server: ProcessIdentity) -> list[ProcessIdentity]:
    """The processes in which Spark runs Python: the last generation below the server.

    The server also has short-lived children of other kinds, such as `chmod`.
    """
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, below = [], sorted(children.get(server.pid, []))
    while below:
        found += [pid for pid in below if pid not in children]
        below = sorted(child for pid in below for child in children.get(pid, []))
    identities = (identity_of(pid) for pid in found if _runs_python(pid))
    return [one for one in identities if one is not None]


def _runs_python(pid: int) -> bool:
    try:
        return b"pyspark" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
