"""The sections of the settings, one file each, in the order in which they are printed.

Each option is a field with a type, a default and a sentence, from which the documentation is
generated. A new section is a file and a line here.
"""

from typing import Self

from pydantic import model_validator

from penstock.settings.sections.base import Section
from penstock.settings.sections.consumer import ConsumerSettings
from penstock.settings.sections.controller import ControllerSection
from penstock.settings.sections.kafka import KafkaSettings
from penstock.settings.sections.kubernetes import KubernetesSettings
from penstock.settings.sections.lake import LakeSettings, TableSettings
from penstock.settings.sections.log import LogSettings
from penstock.settings.sections.monitor import MonitorSettings
from penstock.settings.sections.objective import ObjectiveSettings
from penstock.settings.sections.packing import PackingSettings
from penstock.settings.sections.page import PageSettings
from penstock.settings.sections.spark import SparkSettings
from penstock.settings.sections.telemetry import TelemetrySettings
from penstock.settings.sections.topics import TopicsSettings
from penstock.settings.units import format_duration


class Settings(Section):
    """Everything an operator can set."""

    objective: ObjectiveSettings = ObjectiveSettings()
    kafka: KafkaSettings = KafkaSettings()
    topics: TopicsSettings = TopicsSettings()
    monitor: MonitorSettings = MonitorSettings()
    lake: LakeSettings = LakeSettings()
    spark: SparkSettings = SparkSettings()
    controller: ControllerSection = ControllerSection()
    consumer: ConsumerSettings = ConsumerSettings()
    packing: PackingSettings = PackingSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    page: PageSettings = PageSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @model_validator(mode="after")
    def _waits_fit_periods(self) -> Self:
        """A wait must be at least twice the period of what it waits for."""
        for name, period, wait_name, wait, otherwise in (
            (
                "consumer.report_period",
                self.consumer.report_period,
                "controller.silence",
                self.controller.silence,
                "healthy consumers would be fenced",
            ),
            (
                "monitor.period",
                self.monitor.period,
                "controller.speeds_stale",
                self.controller.speeds_stale,
                "no measurement would be fresh enough to act on",
            ),
        ):
            if 2 * period > wait:
                raise ValueError(
                    f"{name} ({format_duration(period)}) is more than half of {wait_name} "
                    f"({format_duration(wait)}): {otherwise}"
                )
        return self

    @model_validator(mode="after")
    def _credentials_stay_secret(self) -> Self:
        """A Connect server reads Kafka with the consumer's credentials, which travel to it."""
        has_credentials = self.kafka.sasl_password or self.kafka.ssl_key_password
        if has_credentials and self.spark.is_exposed:
            raise ValueError(
                f"the credentials of Kafka would cross to {self.spark.master} in clear text; give "
                "the server TLS (spark.certificate_file), and write ;use_ssl=true in spark.master"
            )
        return self

    @model_validator(mode="after")
    def _local_consumers_may_end(self) -> Self:
        """Kubernetes has a grace period of its own, which its back-end checks."""
        allowed, needed = self.controller.consumer_grace, self.consumer.grace
        if self.controller.deployment == "local" and allowed <= needed:
            raise ValueError(
                f"controller.consumer_grace ({format_duration(allowed)}) is not longer than "
                f"consumer.grace ({format_duration(needed)}): local consumers would be killed "
                "during a batch"
            )
        return self


__all__ = [
    "ConsumerSettings",
    "ControllerSection",
    "KafkaSettings",
    "KubernetesSettings",
    "LakeSettings",
    "LogSettings",
    "MonitorSettings",
    "ObjectiveSettings",
    "PackingSettings",
    "PageSettings",
    "Section",
    "Settings",
    "SparkSettings",
    "TableSettings",
    "TelemetrySettings",
    "TopicsSettings",
]
