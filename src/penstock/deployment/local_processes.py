"""Consumers as processes on this machine: the default back-end.

Each has a folder below the group's directory:

    consumer-3/deployment.json   its process (number and start time), version and restarts
    consumer-3/consumer.log      its output
    consumer-3/started           made by the consumer when its start is complete
    consumer-3/state/            its state directory, kept when the consumer is deleted

A controller that restarts finds its consumers by deployment.json. The start time makes sure that
an unrelated process with the same number is never touched. Consumers survive the controller; they
watch their owner process (`penstock up`) and end with it.

A start takes a core for a second or two. Twenty at once would take the machine away from the broker
and the Spark server that they all wait for, so only a few start at a time. The others have a
deployment.json without a process, and are started in the order in which they were asked for. A
start that takes several times as long as those before it waits for something else than the
processor, and holds up nobody. How long the others took is seen by the times of their files.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from penstock.deployment.interface import (
    FAILED_AFTER_RESTARTS,
    DeployedConsumer,
    DeploymentError,
    DeploymentState,
    DeploymentTemplate,
    Incident,
    TrialOutcome,
    template_of,
)
from penstock.model import ConsumerId
from penstock.model.json_text import read_json
from penstock.processes import ProcessIdentity, is_alive, start_detached, stop
from penstock.processes.restart_pace import pause_s, restarts_after

LOG_BYTES_MAX = 50_000_000
STARTED_NAME = "started"
# While this file is in the group's directory, no consumer is started: a server that all of them
# need is starting again.
SERVERS_RESTARTING_NAME = "servers-restarting"
_NOTE = "deployment.json"
_PREFIX = "consumer-"


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The complete command and environment of a consumer process."""

    command: Sequence[str]
    environment: Mapping[str, str]


# (consumer, its template, its state directory) -> how to start it
Launcher = Callable[[ConsumerId, DeploymentTemplate, Path], LaunchPlan]
# Whether consumers of this template could work
Trial = Callable[[DeploymentTemplate], TrialOutcome]


def _not_tried(_: DeploymentTemplate) -> TrialOutcome:
    return TrialOutcome(note="this back-end has no trial")


@dataclass(frozen=True, slots=True)
class _Note:
    """The content of deployment.json."""

    consumer: int
    group: str
    # None while it waits to be started.
    process: ProcessIdentity | None
    template: DeploymentTemplate
    restarts: int = 0
    # When it was started or began to wait, on the machine's monotonic clock (the same for all
    # processes).
    started_monotonic_s: float = 0.0
    # The process with which it ends; empty when it outlives the controller.
    owner: str = ""

    @property
    def is_alive(self) -> bool:
        return self.process is not None and is_alive(self.process)


class LocalProcesses:
    """Safe to call from several threads. Calls for the same consumer run one after another."""

    # The notes in the folder are the deployment.
    lists_are_current = True

    def __init__(
        self,
        directory: Path,
        group: str,
        launcher: Launcher,
        *,
        trial: Trial = _not_tried,
        grace_s: float = 30.0,
        starts_at_once_max: int | None = None,
        start_counts_s: float = 20.0,
        start_counts_s_max: float = 90.0,
        start_slack: float = 3.0,
        owner: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`starts_at_once_max` bounds the starts under way; None starts everything at once.

        A start counts for `start_slack` times as long as the starts of the consumers that run took
        in the middle, within the two bounds. `owner` is noted for every consumer that is started
        here.
        """
        self._directory = directory
        self._group = group
        self._launcher = launcher
        self._trial = trial
        self._grace_s = grace_s
        self._starts_at_once_max = starts_at_once_max
        self._start_counts_s = start_counts_s
        self._start_counts_s_max = start_counts_s_max
        self._start_slack = start_slack
        self._owner = owner
        self._monotonic = monotonic
        self._starts_lock = threading.Lock()
        # Found while another consumer was created, and not told yet.
        self._incidents: list[Incident] = []
        self._locks: dict[ConsumerId, threading.Lock] = {}
        self._locks_lock = threading.Lock()

    def list_consumers(self) -> Mapping[ConsumerId, DeployedConsumer]:
        found = {}
        for note in self._notes():
            consumer = ConsumerId(note.consumer)
            found[consumer] = DeployedConsumer(
                consumer,
                note.template.version,
                self._state(note),
                note.restarts,
                _detail(note),
                is_starting=note.process is None,
            )
        return {consumer: found[consumer] for consumer in sorted(found)}

    def started_here(self) -> list[ConsumerId]:
        """The consumers that were started, or wait to be started, for this owner."""
        return [ConsumerId(note.consumer) for note in self._notes() if note.owner == self._owner]

    def create(self, consumer: ConsumerId, template: DeploymentTemplate) -> None:
        with self._lock(consumer):
            if self._read(consumer) is not None:
                return
            waiting = _Note(
                int(consumer),
                self._group,
                None,
                template,
                started_monotonic_s=self._monotonic(),
                owner=self._owner,
            )
            with self._not_started(consumer):
                self._folder(consumer).mkdir(parents=True, exist_ok=True)
                self._write(waiting)
        failures = self._start_who_is_due()
        if consumer in failures:
            raise failures[consumer]

    def delete(self, consumer: ConsumerId) -> None:
        with self._lock(consumer):
            note = self._read(consumer)
            if note is not None:
                # The note goes after the process, so that a crash in between loses no process.
                if note.process is not None:
                    stop(note.process, grace_s=self._grace_s)
                self._note_file(consumer).unlink(missing_ok=True)

    def try_out(self, template: DeploymentTemplate) -> TrialOutcome:
        return self._trial(template)

    def repair(self) -> Sequence[Incident]:
        failures = self._start_who_is_due()
        with self._starts_lock:
            incidents, self._incidents = self._incidents, []
        # Who could not be started has no process.
        not_started = [Incident(one, str(e), has_ended=True) for one, e in failures.items()]
        return [*incidents, *not_started]

    def _start_who_is_due(self) -> dict[ConsumerId, DeploymentError]:
        """Start waiting and dead consumers, the longest waiting first, as many as may start now.

        A death is reported by the next repair, even if its restart must wait.
        """
        failures: dict[ConsumerId, DeploymentError] = {}
        with self._starts_lock:
            notes = self._notes()
            due = [note for note in notes if not note.is_alive and self._is_due(note)]
            free_starts = self._free_starts(notes) if due else 0
            for note in sorted(due, key=lambda note: note.started_monotonic_s):
                consumer = ConsumerId(note.consumer)
                lock = self._lock(consumer)
                if not lock.acquire(blocking=False):
                    continue  # it is being created or deleted right now
                try:
                    if self._read(consumer) == note:
                        self._incidents += self._start_again(note, may_start=free_starts > 0)
                        free_starts -= 1
                except DeploymentError as error:
                    failures[consumer] = error
                finally:
                    lock.release()
        return failures

    def _free_starts(self, notes: Sequence[_Note]) -> int:
        if (self._directory / SERVERS_RESTARTING_NAME).exists():
            return 0
        if self._starts_at_once_max is None:
            return len(notes)
        counts_s = self._start_counts_for_s(notes)
        return self._starts_at_once_max - sum(self._is_starting(note, counts_s) for note in notes)

    def _start_counts_for_s(self, notes: Sequence[_Note]) -> float:
        """The middle, and a bound: a start that waited for the Spark server says little."""
        took_s = [took_s for note in notes if note.is_alive and (took_s := self._took_s(note)) > 0]
        usual_s = median(took_s) if took_s else 0.0
        return max(self._start_counts_s, min(self._start_counts_s_max, self._start_slack * usual_s))

    def _took_s(self, note: _Note) -> float:
        """How long a start took; 0 while it is not known. The note is written when it begins."""
        folder = self._folder(ConsumerId(note.consumer))
        try:
            return (folder / STARTED_NAME).stat().st_mtime - (folder / _NOTE).stat().st_mtime
        except OSError:
            return 0.0

    def _is_starting(self, note: _Note, counts_s: float) -> bool:
        return (
            note.is_alive
            and self._monotonic() - note.started_monotonic_s < counts_s
            and not (self._folder(ConsumerId(note.consumer)) / STARTED_NAME).exists()
        )

    def _start_again(self, note: _Note, *, may_start: bool) -> list[Incident]:
        consumer, incidents = ConsumerId(note.consumer), list[Incident]()
        if note.process is not None:
            restarts = restarts_after(note.restarts, self._monotonic() - note.started_monotonic_s)
            stop(note.process, grace_s=0)  # it is dead: this removes it from the process table
            then = "was started again" if may_start else "waits until others have started"
            explanation = f"died and {then} ({restarts}). Last line: {self._last_line(consumer)}"
            incidents.append(Incident(consumer, explanation, has_ended=True))
            note = replace(note, process=None, restarts=restarts)
            with self._not_started(consumer):
                self._write(note)
        if may_start:
            try:
                self._start(consumer, note.template, restarts=note.restarts)
            except DeploymentError:
                self._note_file(consumer).unlink(missing_ok=True)  # whoever wants it asks again
                raise
        return incidents

    def _last_line(self, consumer: ConsumerId) -> str:
        log = self._folder(consumer) / "consumer.log"
        if not log.is_file():
            return ""
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 10_000))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
        return lines[-1] if lines else ""

    def _is_due(self, note: _Note) -> bool:
        since_s = self._monotonic() - note.started_monotonic_s
        return note.process is None or since_s >= pause_s(note.restarts)

    def _state(self, note: _Note) -> DeploymentState:
        if note.process is None:
            return DeploymentState.WAITING
        if note.is_alive:
            return DeploymentState.RUNNING
        if note.restarts >= FAILED_AFTER_RESTARTS:
            return DeploymentState.FAILED
        return DeploymentState.RESTARTING

    def _start(self, consumer: ConsumerId, template: DeploymentTemplate, *, restarts: int) -> None:
        folder = self._folder(consumer)
        plan = self._launcher(consumer, template, folder / "state")
        with self._not_started(consumer):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / STARTED_NAME).unlink(missing_ok=True)
            log = folder / "consumer.log"
            if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
                log.replace(log.with_suffix(".log.1"))
            process = start_detached(
                list(plan.command), log_file=log, environment=dict(plan.environment)
            )
            note = _Note(
                int(consumer),
                self._group,
                process,
                template,
                restarts,
                self._monotonic(),
                self._owner,
            )
            try:
                self._write(note)
            except OSError:
                stop(process, grace_s=self._grace_s)  # without its note it could not be found
                raise

    @contextmanager
    def _not_started(self, consumer: ConsumerId) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DeploymentError(
                f"Consumer {consumer} could not be started in {self._folder(consumer)}: "
                f"{error.strerror}."
            ) from error

    def _write(self, note: _Note) -> None:
        file = self._note_file(ConsumerId(note.consumer))
        partial = file.with_suffix(".partial")
        # Variables of a request are in it: for the group's own user only.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(json.dumps(asdict(note)))
        partial.replace(file)

    def _notes(self) -> list[_Note]:
        folders = self._directory.glob(f"{_PREFIX}*/{_NOTE}")
        consumers = [_number(folder.parent.name) for folder in folders]
        notes = [self._read(consumer) for consumer in sorted(c for c in consumers if c is not None)]
        return [note for note in notes if note is not None]

    def _read(self, consumer: ConsumerId) -> _Note | None:
        """The consumer's note; None when absent, unreadable, or of another group."""
        try:
            content = read_json(self._note_file(consumer).read_text(encoding="utf-8"))
            process = content["process"]
            content["process"] = None if process is None else ProcessIdentity(**process)
            content["template"] = template_of(content["template"])
            note = _Note(**content)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            return (
                None  # treated as not deployed; the state directory's lock stops a second process
            )
        return note if note.group == self._group and note.consumer == consumer else None

    def _folder(self, consumer: ConsumerId) -> Path:
        return self._directory / f"{_PREFIX}{int(consumer)}"

    def _note_file(self, consumer: ConsumerId) -> Path:
        return self._folder(consumer) / _NOTE

    def _lock(self, consumer: ConsumerId) -> threading.Lock:
        with self._locks_lock:
            return self._locks.setdefault(consumer, threading.Lock())

    def process_of(self, consumer: ConsumerId) -> ProcessIdentity:
        """The process of a consumer, for tests and the demo that harm it."""
        note = self._read(consumer)
        if note is None or note.process is None:
            raise DeploymentError(f"Consumer {consumer} is not deployed.", is_retryable=False)
        return note.process


def _number(folder_name: str) -> ConsumerId | None:
    digits = folder_name.removeprefix(_PREFIX)
    return ConsumerId(int(digits)) if digits.isascii() and digits.isdigit() else None


def _detail(note: _Note) -> str:
    if note.process is None:
        return "waits until others have started"
    if note.is_alive:
        return f"process {note.process.pid}"
    return f"process {note.process.pid} ended; {note.restarts} restarts"
