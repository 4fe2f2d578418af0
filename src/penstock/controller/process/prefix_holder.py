"""Who leads on these control topics, and whether a new controller may begin.

A leading controller writes who and where it is to `<prefix>-state`, and at its end that it has
ended. A controller that starts elsewhere reads it, and listens: while heartbeats come it is refused
with the holder's name, instead of fencing it. A holder that crashed cannot block for ever: one that
is known to be dead is followed at once, a silent one after `controller.takeover_after`.

Only a new place is asked to wait. A controller that is started again in the same folder, or as a
replacement on the same Kubernetes Deployment, leads at once, as it did before.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from penstock.errors import PenstockError
from penstock.kafka_io.committed_records import newest_in_a_transaction
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.leading_producer import FencedError, Outgoing
from penstock.kafka_io.partition_reader import KafkaRecord, PartitionReader, ReadFailure
from penstock.messages import ControllerHeartbeat, LeadershipEnd, decode
from penstock.model import TopicPartition
from penstock.model.epoch import INTEGER_MAX
from penstock.model.json_text import read_json
from penstock.processes import ProcessIdentity, identity_of, is_alive
from penstock.processes.command_line import command_line
from penstock.settings import Settings

# No group has such a name: the records of groups are on the same topic.
_KEY = b"/holder"
_READ_WAIT_S = 0.5
_TEXT_LENGTH_MAX = 200
# The last second of the year 9999: later ones cannot be shown.
_UNIX_MS_MAX = 253_402_300_799_000


class PrefixTakenError(PenstockError):
    """Another controller leads on these control topics."""

    exit_code = FencedError.exit_code


@dataclass(frozen=True, slots=True)
class Holder:
    """A controller that leads, as others see it."""

    group: str
    host: str
    pid: int
    started_at_ticks: int
    # Where process numbers are the same ones: this start of the machine, and the container.
    processes_of: str
    # A folder of a host, or a Deployment of a Kubernetes namespace.
    place: str
    folder: str
    since_unix_ms: int
    command: str
    epoch: int = 0
    has_ended: bool = False

    @classmethod
    def of_this_process(cls, settings: Settings) -> Self:
        me = identity_of(os.getpid()) or ProcessIdentity(os.getpid(), 0)
        host = _printable(socket.gethostname())
        folder = _printable(str(Path(settings.controller.directory).absolute()))
        return cls(
            group=settings.lake.group,
            host=host,
            pid=me.pid,
            started_at_ticks=me.started_at_ticks,
            processes_of=_processes_of(),
            place=_kubernetes_place(settings) or f"{host}:{folder}",
            folder=folder,
            since_unix_ms=time.time_ns() // 1_000_000,
            command=_printable(command_line(sys.argv))[:_TEXT_LENGTH_MAX],
        )

    @classmethod
    def read(cls, value: bytes) -> Self | None:
        """What a record says; None when it is of another release, or forged."""
        try:
            found = cls(**read_json(value))
        except (ValueError, TypeError):
            return None
        return found if found._is_sound() else None

    def _is_sound(self) -> bool:
        """Whether every field is of its type, and a text one that may be printed."""
        texts = (self.group, self.host, self.processes_of, self.place, self.folder, self.command)
        numbers = (self.pid, self.started_at_ticks, self.since_unix_ms, self.epoch)
        return (
            all(isinstance(one, str) and one.isprintable() for one in texts)
            and all(type(one) is int and 0 <= one <= INTEGER_MAX for one in numbers)
            and isinstance(self.has_ended, bool)
            and self.since_unix_ms <= _UNIX_MS_MAX
        )

    def is_dead_here(self) -> bool:
        """Whether its process ran on this machine and is gone; False when nobody can know."""
        is_here = bool(self.processes_of) and self.processes_of == _processes_of()
        return is_here and not is_alive(ProcessIdentity(self.pid, self.started_at_ticks))

    def record(self, settings: Settings) -> Outgoing:
        value = json.dumps(asdict(self), sort_keys=True).encode()
        headers = (("event_type", b"ControllerHolder"),)
        return Outgoing(settings.topics.names.state, 0, value, headers, key=_KEY)

    def ended(self) -> Self:
        return replace(self, has_ended=True)

    def __str__(self) -> str:
        """Where to look for it. Its command is not told: `penstock up` made it, nobody typed it."""
        since = datetime.fromtimestamp(self.since_unix_ms / 1000, UTC)
        return (
            f"group {self.group}, process {self.pid} on {self.host}, folder {self.folder}, "
            f"since {since:%Y-%m-%d %H:%M:%S} UTC"
        )


def holder_of(settings: Settings) -> Holder | None:
    """Who last led on these control topics; None when nobody did, or an older release."""
    try:
        partition = TopicPartition(settings.topics.names.state, 0)
        value = newest_in_a_transaction(settings.kafka, partition, _KEY)
    except TopicMissingError:
        return None
    # Of one that cannot be read heartbeats alone say who leads.
    return None if value is None else Holder.read(value)


def require_free_prefix(
    settings: Settings,
    *,
    on_wait: Callable[[Holder], None] = lambda _: None,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Return when no controller of another place leads here; PrefixTakenError while one does.

    Takes a heartbeat's time, and `controller.takeover_after` after a holder that fell silent.
    """
    holder, own = holder_of(settings), Holder.of_this_process(settings)
    if holder is None or holder.has_ended or holder.is_dead_here():
        return
    if holder.place == own.place and holder.group == own.group:
        return  # the lock of the folder, or Kubernetes, sees to it that the former one ends
    on_wait(holder)
    if _leads(settings, holder, monotonic):
        raise taken(settings, str(holder), holder.group)


def prefix_state(settings: Settings, *, monotonic: Callable[[], float] = time.monotonic) -> str:
    """Whose the control topics are, in words; PrefixTakenError while another group leads there."""
    holder, prefix = holder_of(settings), f"{settings.topics.prefix}-*"
    if holder is None:
        return f"no controller has used the topics {prefix} yet"
    if holder.group == settings.lake.group:
        return f"{prefix} is this group's ({holder.group})"
    if not (holder.has_ended or holder.is_dead_here()) and _leads(settings, holder, monotonic):
        raise taken(settings, str(holder), holder.group)
    return f"{prefix} was last used by group {holder.group}, which leads no more"


def taken(settings: Settings, who: str, group: str) -> PrefixTakenError:
    by = "Another controller leads on the control topics"
    if group != settings.lake.group:
        by = f"Another group, {group}, has the control topics"
    return PrefixTakenError(
        f"{by} {settings.topics.prefix}-* ({who}).",
        remedy="Stop that one first. A group for other topics needs names of its own (--set "
        "topics.prefix=NAME --set lake.group=NAME); two groups that carry one topic into one "
        "lake.root write every record twice. Nothing of the other was touched.",
    )


def _leads(settings: Settings, holder: Holder, monotonic: Callable[[], float]) -> bool:
    """Listen to the controllers' partition until a heartbeat comes, an end, or long silence."""
    partition = TopicPartition(settings.topics.names.controller, 0)
    with closing(PartitionReader(settings.kafka)) as reader:
        reader.assign({partition: reader.log_range(partition).end})
        deadline_s = monotonic() + settings.controller.takeover_after
        while monotonic() < deadline_s:
            for outcome in reader.read(_READ_WAIT_S):
                if isinstance(outcome, ReadFailure):
                    raise outcome.error  # time without an answer is not silence
                if not isinstance(outcome, KafkaRecord):
                    continue
                found = decode(outcome.value, outcome.headers, topic_role="controller", mailbox=0)
                # One that was fenced may not know it yet, and still sends its own heartbeats.
                if isinstance(found, ControllerHeartbeat | LeadershipEnd) and (
                    found.controller_epoch >= holder.epoch
                ):
                    return isinstance(found, ControllerHeartbeat)
    return False


def _printable(text: str) -> str:
    """A name may have any characters; a record with others than these is not believed."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _processes_of() -> str:
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return ""


def _kubernetes_place(settings: Settings) -> str:
    """Empty when the controller is no part of a Deployment that could replace it."""
    kubernetes = settings.kubernetes
    if settings.controller.deployment != "kubernetes" or not kubernetes.owner:
        return ""
    namespace = kubernetes.namespace
    with suppress(OSError):
        own = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
        namespace = namespace or own.read_text(encoding="utf-8").strip()
    return f"kubernetes:{namespace}/{kubernetes.owner}"
