"""All metrics, in the order in which they are documented."""

from penstock.metrics import of_consumer, of_controller, of_every_process, of_monitor
from penstock.metrics.definition import Metric

METRICS: tuple[Metric, ...] = (
    *of_every_process.METRICS,
    *of_monitor.METRICS,
    *of_controller.METRICS,
    *of_consumer.METRICS,
)
BY_NAME = {metric.name: metric for metric in METRICS}
