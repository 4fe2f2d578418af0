"""What the processes say about themselves: events with keys, not prose."""

from penstock.telemetry.logs import configure_logs, get_logger

__all__ = ["configure_logs", "get_logger"]
