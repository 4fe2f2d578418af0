"""Ends this process with SIGTERM when its owner process ends.

A consumer outlives its parent, the controller, but must end with its owner, `penstock up`. The
kernel signals the owner's end through a file descriptor.
"""

import os
import select
import signal
import threading

from penstock.errors import UsageError
from penstock.processes.identity import ProcessIdentity, is_alive


def owner_from_text(text: str) -> ProcessIdentity:
    """`PID:TICKS`, as `owner_as_text` writes it."""
    pid, colon, ticks = text.partition(":")
    if not (colon and pid.isdigit() and ticks.isdigit()):
        raise UsageError(f"{text!r} is not a process as PID:TICKS.")
    return ProcessIdentity(int(pid), int(ticks))


def owner_as_text(owner: ProcessIdentity) -> str:
    return f"{owner.pid}:{owner.started_at_ticks}"


def end_with(owner: ProcessIdentity) -> None:
    """Send this process SIGTERM when `owner` ends."""
    threading.Thread(target=_watch, args=(owner,), daemon=True, name="owner").start()


def _watch(owner: ProcessIdentity) -> None:
    try:
        descriptor = os.pidfd_open(owner.pid)
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGTERM)
        return
    # Checked after the descriptor is open, so that a reused process number is noticed.
    if is_alive(owner):
        select.select([descriptor], [], [])
    os.close(descriptor)
    os.kill(os.getpid(), signal.SIGTERM)
