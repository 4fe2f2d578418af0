"""What the processes say about themselves: events with keys, not prose."""

from penstock.telemetry.health import Health, HealthServer
from penstock.telemetry.logs import configure_logs, get_logger

__all__ = ["Health", "HealthServer", "configure_logs", "get_logger"]
