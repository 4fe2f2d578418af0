"""One file a section of the settings file, gathered here in the order in which they are printed.

Each option is a field with a type, a default and one sentence; the documentation is generated from
them. Adding a section is a file and a line.
"""

from penstock.settings.sections.base import Section
from penstock.settings.sections.kafka import KafkaSettings
from penstock.settings.sections.log import LogSettings
from penstock.settings.sections.topics import TopicsSettings


class Settings(Section):
    """Everything an operator can set."""

    kafka: KafkaSettings = KafkaSettings()
    topics: TopicsSettings = TopicsSettings()
    log: LogSettings = LogSettings()


__all__ = ["KafkaSettings", "LogSettings", "Section", "Settings", "TopicsSettings"]
