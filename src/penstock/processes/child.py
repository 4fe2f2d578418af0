"""Starts processes with output to a file, and stops them with SIGTERM, then SIGKILL."""

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.processes.identity import ProcessIdentity, identity_of, is_alive, send_signal

# How long a server or a child may take to end before it is killed.
STOP_GRACE_S = 20.0
_LOOK_AGAIN_S = 0.05
ENDED_AT_ONCE = -1  # no process has this start time, so such an identity is never alive


def start_child(
    command: Sequence[str], *, log_file: Path, environment: Mapping[str, str] | None = None
) -> ProcessIdentity:
    """Start a process that ends with this one, even if this one is killed."""
    guard = [sys.executable, "-m", "penstock.processes.die_with_parent", str(os.getpid())]
    return _start([*guard, *command], log_file, environment)


def start_detached(
    command: Sequence[str], *, log_file: Path, environment: Mapping[str, str] | None = None
) -> ProcessIdentity:
    """Start a process that keeps running when this one ends."""
    return _start(command, log_file, environment)


def _start(
    command: Sequence[str], log_file: Path, environment: Mapping[str, str] | None
) -> ProcessIdentity:
    pid = os.posix_spawnp(
        command[0],
        list(command),
        dict(os.environ if environment is None else environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        # A session of its own: Ctrl-C reaches only this process, which then stops its children.
        setsid=True,
    )
    return identity_of(pid) or ProcessIdentity(pid, ENDED_AT_ONCE)


def exit_code_of(process: ProcessIdentity) -> int | None:
    """How a child of this process has ended; None while it runs, or when nobody knows any more."""
    if is_alive(process):
        return None
    try:
        pid, status = os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if pid else None


def stop(process: ProcessIdentity, *, grace_s: float) -> None:
    stop_all([process], grace_s=grace_s)


def stop_all(processes: Sequence[ProcessIdentity], *, grace_s: float) -> None:
    """Send SIGTERM to all, wait up to `grace_s`, then kill what is left."""
    for process in processes:
        send_signal(process, signal.SIGTERM)
        send_signal(process, signal.SIGCONT)  # a paused process cannot handle SIGTERM
    deadline = time.monotonic() + grace_s
    left = _reap(processes)
    while left and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)  # the only way to wait for a process that is not our child
        left = _reap(left)
    for process in left:
        send_signal(process, signal.SIGKILL)
    while left := _reap(left):
        time.sleep(_LOOK_AGAIN_S)  # as above


def _reap(processes: Sequence[ProcessIdentity]) -> list[ProcessIdentity]:
    """The processes that are still alive; ended children are removed from the process table."""
    for process in processes:
        if identity_of(process.pid) is None:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue  # not our child, or already removed
    return [process for process in processes if is_alive(process)]
