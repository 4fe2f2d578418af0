"""Hears which monitors publish to the monitor topic, by the headers of their messages alone."""

from penstock.kafka_io.partition_reader import (
    FailureKind,
    KafkaRecord,
    PartitionReader,
    ReadFailure,
)
from penstock.messages import WriteSpeedMeasurement
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings, TopicsSettings

_MESSAGES_AT_ONCE = 100
_NUMBER_DIGITS_MAX = 19


class HeardMonitors:
    """From now on: what was published before is not heard."""

    def __init__(self, kafka: KafkaSettings, topics: TopicsSettings) -> None:
        self._partition = TopicPartition(topics.names.monitor, 0)
        self._reader = PartitionReader(kafka)
        self._reader.assign({self._partition: self._reader.log_range(self._partition).end})

    def incarnations(self) -> set[int]:
        """Those that have published since the last call. Waits for nothing."""
        found: set[int] = set()
        while outcomes := self._reader.read(0.0, count=_MESSAGES_AT_ONCE):
            for outcome in outcomes:
                if isinstance(outcome, KafkaRecord):
                    found |= _incarnation(outcome)
                elif isinstance(outcome, ReadFailure) and outcome.kind is FailureKind.OFFSET_GONE:
                    self._reader.restart(self._partition)
        return found

    def close(self) -> None:
        self._reader.close()


def _incarnation(record: KafkaRecord) -> set[int]:
    headers = dict(record.headers)
    if headers.get("event_type") != WriteSpeedMeasurement.__name__.encode():
        return set()
    text = headers.get("monitor_incarnation") or b""
    return {int(text)} if text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX else set()
