"""Looks whether Kafka has any topic that the settings include, before anybody waits for it."""

from penstock.errors import SettingsError
from penstock.kafka_io.administration import Administration
from penstock.monitor.core.partitions_of_interest import nothing_included
from penstock.settings import Settings


def none_included(settings: Settings, *, named_by: str = "monitor.include") -> SettingsError | None:
    """What to say when no topic is measured; `named_by` is where the patterns were given."""
    names = Administration(settings.kafka).cluster().partition_counts
    return nothing_included(settings.monitor, settings.topics, names, named_by=named_by)


def require_included(settings: Settings, *, named_by: str = "monitor.include") -> None:
    error = none_included(settings, named_by=named_by)
    if error is not None:
        raise error
