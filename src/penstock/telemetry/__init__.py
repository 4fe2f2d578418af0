"""Log events, health answers and metrics of the processes."""

from penstock.telemetry.health import Health, HealthServer
from penstock.telemetry.logs import configure_logs, get_logger
from penstock.telemetry.metric_store import MetricStore

__all__ = ["Health", "HealthServer", "MetricStore", "configure_logs", "get_logger"]
