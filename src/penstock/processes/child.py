"""Starts and ends processes: argument lists only, output to a file, ended politely, then surely."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.processes.identity import ProcessIdentity, identity_of, is_alive, send_signal

_LOOK_AGAIN_S = 0.05


def start_child(
    command: Sequence[str], *, log_file: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A process that ends with us, whatever ends us. Its output goes to `log_file`."""
    guard = [sys.executable, "-m", "penstock.processes.die_with_parent", str(os.getpid())]
    return _start([*guard, *command], log_file, environment)


def start_detached(
    command: Sequence[str], *, log_file: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A process of its own session that stays when we end."""
    return _start(command, log_file, environment)


def _start(
    command: Sequence[str], log_file: Path, environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    with log_file.open("ab") as log:
        # A session of its own: Ctrl-C at the terminal reaches us alone, and we end it in order.
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )


def stop(process: ProcessIdentity, *, grace_s: float) -> None:
    stop_all([process], grace_s=grace_s)


def stop_all(processes: Sequence[ProcessIdentity], *, grace_s: float) -> None:
    """Ask all at once to end, wait for `grace_s` together, then kill what is left."""
    for process in processes:
        send_signal(process, signal.SIGTERM)
        send_signal(process, signal.SIGCONT)  # a paused process cannot hear the first
    deadline = time.monotonic() + grace_s
    left = _reap(processes)
    while left and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)  # the only way to wait for a process that is not our child
        left = _reap(left)
    for process in left:
        send_signal(process, signal.SIGKILL)
    while left := _reap(left):
        time.sleep(_LOOK_AGAIN_S)


def _reap(processes: Sequence[ProcessIdentity]) -> list[ProcessIdentity]:
    """Those that still live; children of ours that ended are taken off the process table."""
    for process in processes:
        if identity_of(process.pid) is None:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue  # not our child, or reaped already: nothing to take
    return [process for process in processes if is_alive(process)]
