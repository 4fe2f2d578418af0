"""Follows a few partitions from given offsets on.

Used by the controller for its mailbox and the service topic, and by everything that waits for an
answer on the service topic. Where the offset asked for is gone, reading begins with the first
record that is left.
"""

from collections.abc import Mapping

from penstock.kafka_io.partition_reader import (
    FailureKind,
    KafkaRecord,
    PartitionReader,
    ReadFailure,
)
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

AT_THE_END = -1


class FollowedTopics:
    def __init__(self, kafka: KafkaSettings, since: Mapping[TopicPartition, int]) -> None:
        """`since` gives the first offset to read; AT_THE_END reads only what comes from now on."""
        self._reader = PartitionReader(kafka)
        # The first offset of each partition, also where AT_THE_END was asked for.
        self.starts: dict[TopicPartition, int] = {}
        for partition, offset in sorted(since.items()):
            log = self._reader.log_range(partition)
            self.starts[partition] = (
                log.end if offset == AT_THE_END else min(max(offset, log.start), log.end)
            )
        self._reader.assign(self.starts)

    def read(self, timeout_s: float) -> KafkaRecord | None:
        """The next record; None when there is none yet or the brokers are away."""
        for outcome in self._reader.read(timeout_s):
            if isinstance(outcome, KafkaRecord):
                return outcome
            if isinstance(outcome, ReadFailure):
                self._failed(outcome)
        return None

    def end_of(self, partition: TopicPartition) -> int:
        """Where its log ends now."""
        return self._reader.log_range(partition).end

    def partitions_of(self, topic: str) -> int:
        """How many partitions it has now."""
        return self._reader.partitions_of(topic)

    def _failed(self, failure: ReadFailure) -> None:
        if failure.kind is FailureKind.LASTING:
            raise failure.error
        if failure.kind is FailureKind.OFFSET_GONE and failure.partition is not None:
            self._reader.restart(failure.partition)

    def close(self) -> None:
        self._reader.close()
