"""Starts, identifies and stops processes, and leaves none behind."""

from penstock.processes.child import (
    STOP_GRACE_S,
    exit_code_of,
    start_child,
    start_detached,
    stop,
    stop_all,
)
from penstock.processes.identity import ProcessIdentity, identity_of, is_alive, send_signal
from penstock.processes.log_lines import LogLines
from penstock.processes.registry import RunningServer, ServerRegistry
from penstock.processes.restart_pace import REPAIR_EVERY_S

__all__ = [
    "REPAIR_EVERY_S",
    "STOP_GRACE_S",
    "LogLines",
    "ProcessIdentity",
    "RunningServer",
    "ServerRegistry",
    "exit_code_of",
    "identity_of",
    "is_alive",
    "send_signal",
    "start_child",
    "start_detached",
    "stop",
    "stop_all",
]
