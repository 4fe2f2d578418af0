"""What the control topics must be, and what is wrong with those that a cluster has.

    <prefix>-monitor      1 partition; limited by bytes, never by age: measurements
    <prefix>-controller   partition 0: the controller's own claims and heartbeats; n: commands to
                          consumer n
    <prefix>-consumer     1 partition: what consumers tell the controller
    <prefix>-query        partition n: state queries to consumer n
    <prefix>-service      1 partition: operators' requests and their answers
    <prefix>-state        1 partition, compacted: what a new controller must know
    <prefix>-status       1 partition, compacted and limited by bytes: what people see
    <prefix>-commit       16 partitions, limited by bytes: batches that one consumer commits for
                          several; only where they commit together (`lake.commits`)

`penstock topics` makes and grows topics by this. Kafka cannot shrink a topic, so partition counts
only grow. A wrong topic setting is reported and never changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from penstock.model.commit_partitions import COMMIT_PARTITIONS
from penstock.model.consumer_id import CONSUMER_ID_MIN
from penstock.settings.sections import TopicsSettings

_COMPACTED_SEGMENT_BYTES = 4 * 2**20
# Compaction keeps it far below; this holds where a broker's cleaner has stopped.
_STATUS_BYTES_MAX = 32 * 2**20
# Of each partition. What is older than some seconds is of no use.
_COMMIT_BYTES_MAX, _COMMIT_SEGMENT_BYTES = 32 * 2**20, 8 * 2**20


@dataclass(frozen=True, slots=True)
class ControlTopic:
    name: str
    partitions: int
    settings: Mapping[str, str]
    exactly_one_partition: bool


@dataclass(frozen=True, slots=True)
class SeenTopic:
    partitions: int
    settings: Mapping[str, str]


class TopicState(StrEnum):
    OK = "ok"
    MISSING = "missing"
    TOO_FEW_PARTITIONS = "too-few-partitions"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class TopicFinding:
    topic: str
    verdict: TopicState
    explanation: str


def control_topics(
    settings: TopicsSettings, *, highest_consumer_id: int = 0
) -> tuple[ControlTopic, ...]:
    """There are mailboxes for `consumers_ahead` consumers more than the highest id."""
    names = settings.names
    mailboxes = CONSUMER_ID_MIN + highest_consumer_id + settings.consumers_ahead
    deleted = {"cleanup.policy": "delete"}
    kept = {
        **deleted,
        "retention.ms": "-1",
        "retention.bytes": str(settings.monitor_retention),
    }
    # Kafka compacts only closed segments: small ones keep the topic short.
    compacted = {"cleanup.policy": "compact", "segment.bytes": str(_COMPACTED_SEGMENT_BYTES)}
    # A new status every second, of which only the last one is wanted.
    replaced = {
        **compacted,
        "cleanup.policy": "compact,delete",
        "retention.ms": "-1",
        "retention.bytes": str(_STATUS_BYTES_MAX),
    }
    short = {
        **deleted,
        "retention.bytes": str(_COMMIT_BYTES_MAX),
        "segment.bytes": str(_COMMIT_SEGMENT_BYTES),
    }
    return (
        ControlTopic(names.monitor, 1, kept, exactly_one_partition=True),
        ControlTopic(names.controller, mailboxes, deleted, False),
        ControlTopic(names.consumer, 1, deleted, exactly_one_partition=True),
        ControlTopic(names.query, mailboxes, deleted, False),
        ControlTopic(names.service, 1, deleted, exactly_one_partition=True),
        ControlTopic(names.state, 1, compacted, exactly_one_partition=True),
        ControlTopic(names.status, 1, replaced, exactly_one_partition=True),
        ControlTopic(names.commit, COMMIT_PARTITIONS, short, False),
    )


def compare(wanted: ControlTopic, seen: SeenTopic | None) -> list[TopicFinding]:
    """Everything that is wrong with the topic; a single `ok` when nothing is."""

    def finding(verdict: TopicState, explanation: str) -> TopicFinding:
        return TopicFinding(wanted.name, verdict, explanation)

    if seen is None:
        return [finding(TopicState.MISSING, "does not exist: run `penstock topics create`")]
    found = []
    if seen.partitions < wanted.partitions:
        explanation = f"has {seen.partitions} of {wanted.partitions} partitions: run"
        found.append(
            finding(TopicState.TOO_FEW_PARTITIONS, f"{explanation} `penstock topics create`")
        )
    if wanted.exactly_one_partition and seen.partitions > 1:
        explanation = (
            f"has {seen.partitions} partitions, but order matters: delete it and create it again"
        )
        found.append(finding(TopicState.UNUSABLE, explanation))
    for key in sorted(wanted.settings):
        is_value = seen.settings.get(key, wanted.settings[key])
        if not _is_usable(key, is_value, wanted.settings[key]):
            explanation = (
                f"has {key}={is_value}: set it to {wanted.settings[key]} (kafka-configs --alter)"
            )
            found.append(finding(TopicState.UNUSABLE, explanation))
    return found or [finding(TopicState.OK, f"partitions: {seen.partitions}")]


def _is_usable(key: str, is_value: str, wanted: str) -> bool:
    """Any limit on bytes will do, as long as there is one; all else must be as wanted."""
    if key in {"retention.bytes", "segment.bytes"}:
        return int(is_value) > 0
    return is_value == wanted
