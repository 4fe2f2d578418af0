"""Settings of the control topics."""

from pydantic import field_validator

from penstock.model.control_topic_names import ControlTopicNames
from penstock.model.topic_partition import is_topic_name
from penstock.settings.sections.base import Section, option
from penstock.settings.units import ByteSize


class TopicsSettings(Section):
    """The control topics between monitor, controller and consumers."""

    prefix: str = option(
        "data-engineering", "The control topics are named `<prefix>-monitor` and so on."
    )
    replication_factor: int = option(
        -1, "The replicas of each control topic; -1 uses the broker's default.", ge=-1, le=32767
    )
    consumers_ahead: int = option(
        32,
        "Mailboxes created in advance: the controller and query topics have one partition for each "
        "consumer, and one for the controller.",
        ge=1,
        le=10_000,
    )
    monitor_retention: ByteSize = option(
        64 * 2**20,
        "How many bytes of measurements `<prefix>-monitor` keeps (`retention.bytes`); they never "
        "expire by age.",
        ge=2**20,
    )

    @field_validator("prefix")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if not all(is_topic_name(name) for name in ControlTopicNames(value).all):
            raise ValueError(f"{value!r} is not a valid prefix of a Kafka topic name")
        return value

    @property
    def names(self) -> ControlTopicNames:
        return ControlTopicNames(self.prefix)
