"""Log events and health answers of the processes."""

from penstock.telemetry.health import Health, HealthServer
from penstock.telemetry.logs import configure_logs, get_logger

__all__ = ["Health", "HealthServer", "configure_logs", "get_logger"]
