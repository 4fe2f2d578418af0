"""Starts, identifies and stops processes, and leaves none behind."""

from penstock.processes.child import start_child, start_detached, stop, stop_all
from penstock.processes.identity import ProcessIdentity, identity_of, is_alive, send_signal
from penstock.processes.registry import RunningServer, ServerRegistry

__all__ = [
    "ProcessIdentity",
    "RunningServer",
    "ServerRegistry",
    "identity_of",
    "is_alive",
    "send_signal",
    "start_child",
    "start_detached",
    "stop",
    "stop_all",
]
