"""Which process we mean: its number and the moment it started.

A process number is used again after a death, so a number alone may name a stranger. Signals go only
to a process whose start time is the one we recorded.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

_STATE_FIELD, _START_FIELD = 0, 19  # counted from behind the command's closing bracket


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    pid: int
    started_at_ticks: int


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command stands in brackets and may itself hold brackets and blanks.
    return text.rpartition(")")[2].split()


def identity_of(pid: int) -> ProcessIdentity | None:
    """The identity of a living process; None when there is none (a zombie is dead)."""
    fields = _stat_fields(pid)
    if fields is None or fields[_STATE_FIELD] in {"Z", "X"}:
        return None
    return ProcessIdentity(pid, int(fields[_START_FIELD]))


def is_alive(process: ProcessIdentity) -> bool:
    return identity_of(process.pid) == process


def send_signal(process: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal the process if it is still the one we mean; says whether it was."""
    if not is_alive(process):
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True
