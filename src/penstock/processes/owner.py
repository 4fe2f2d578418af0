"""Ends this process, in order, when the one it belongs to is gone.

For processes whose parent may die without them (a consumer outlives its controller) but which must
not outlive the whole (`penstock up`). The kernel tells through a file descriptor of the owner.
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
        raise UsageError(f"{text!r} names no process as PID:TICKS.")
    return ProcessIdentity(int(pid), int(ticks))


def owner_as_text(owner: ProcessIdentity) -> str:
    return f"{owner.pid}:{owner.started_at_ticks}"


def end_with(owner: ProcessIdentity) -> None:
    """From now on: when `owner` ends, this process gets SIGTERM."""
    threading.Thread(target=_watch, args=(owner,), daemon=True, name="owner").start()


def _watch(owner: ProcessIdentity) -> None:
    try:
        descriptor = os.pidfd_open(owner.pid)
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGTERM)
        return
    # Looked at after the descriptor is ours: a number used again in between is noticed.
    if is_alive(owner):
        select.select([descriptor], [], [])
    os.close(descriptor)
    os.kill(os.getpid(), signal.SIGTERM)
