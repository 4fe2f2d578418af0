"""What the processes tell Prometheus."""

from penstock.settings.sections.base import Section, option
from penstock.settings.units import Duration


class TelemetrySettings(Section):
    """What the processes tell Prometheus."""

    partition_series_max: int = option(
        20_000,
        "Up to how many partitions have metrics of their own; in a larger group only topics and "
        "consumers have. 0: none ever.",
        ge=0,
        le=100_000,
    )
    freshness_objective: Duration = option(
        300.0,
        "How old the newest state of a topic in the lake may be before the alert rules tell "
        "somebody. Follows `objective.freshness` where that is set, and not below 10s.",
        ge=1,
    )
    lag_names: bool = option(
        default=False,
        sentence="Whether backlogs are also told as `kafka_consumergroup_lag` and "
        "`kafka_consumergroup_group_lag_seconds`, which dashboards of Kafka exporters use.",
    )
    metrics_targets: str = option(
        "",
        "A folder for Prometheus's `file_sd_configs`: each process without `--health-port` serves "
        "its metrics on a free port of 127.0.0.1, and writes it to a file there. Empty: none.",
    )
