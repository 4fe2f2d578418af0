"""Identifies a process by its number and its start time.

The kernel reuses process numbers, so a number alone may name another process. Signals go only to a
process with the recorded start time.
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

    def __post_init__(self) -> None:
        """A number from a file goes into a path, and to `kill`."""
        for number in (self.pid, self.started_at_ticks):
            if not isinstance(number, int) or isinstance(number, bool):
                raise ValueError(f"not a process: {number!r:.40}")  # noqa: TRY004 -- as for all that files have


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command is in brackets and may itself contain brackets and spaces.
    return text.rpartition(")")[2].split()


def identity_of(pid: int) -> ProcessIdentity | None:
    """The identity of a running process; None when there is none (a zombie counts as dead)."""
    fields = _stat_fields(pid)
    if fields is None or fields[_STATE_FIELD] in {"Z", "X"}:
        return None
    return ProcessIdentity(pid, int(fields[_START_FIELD]))


def is_alive(process: ProcessIdentity) -> bool:
    return identity_of(process.pid) == process


def send_signal(process: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal the process if it is still the same one; return whether it was."""
    if not is_alive(process):
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True
