"""Compares what Kafka has below the ledger's offset with what the lake has, partition by partition.

Offsets may be sparse (transaction markers, aborted records, compaction), so sets of offsets are
compared, never counts with distances. What retention or compaction has removed from Kafka since it
was carried cannot be compared any more: it is counted apart, and is no fault.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration, TopicView
from penstock.kafka_io.committed_records import committed_records
from penstock.model import OffsetRange, TopicPartition
from penstock.settings import Settings
from penstock.verification.delta_log import TableState
from penstock.verification.lake_offsets import NO_OFFSETS, Lake, Offsets, offsets_of_topic


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """`kafka` counts committed records below the ledger; `unknown` those Kafka no longer has."""

    topic: str
    partition: int
    ledger: int
    kafka: int
    lake: int
    dead_letters: int
    lost: int
    duplicated: int
    out_of_place: int
    unknown: int
    first_lost: int | None = None

    @property
    def is_exact(self) -> bool:
        return not (self.lost or self.duplicated or self.out_of_place)


@dataclass(frozen=True, slots=True)
class VerificationResult:
    partitions: tuple[PartitionVerdict, ...]

    @property
    def is_exact(self) -> bool:
        """Nothing wrong, and something looked at: an empty check proves nothing."""
        return bool(self.partitions) and all(one.is_exact for one in self.partitions)

    def as_data(self) -> dict[str, Any]:
        rows = [{**asdict(one), "exact": one.is_exact} for one in self.partitions]
        return {"exact": self.is_exact, "partitions": rows}


def compare(
    kafka: Offsets, lake: Offsets, dead_letters: Offsets, *, log_start: int, ledger: int
) -> dict[str, int | None]:
    """The law itself: every committed offset below the ledger is in the lake once. Pure."""
    stored = np.concatenate([lake, dead_letters])
    below = stored[stored < ledger]
    unique = np.unique(below)
    lost = np.setdiff1d(kafka, unique)
    elsewhere = np.setdiff1d(unique[unique >= log_start], kafka)
    return {
        "kafka": int(kafka.size),
        "lake": int((lake < ledger).sum()),
        "dead_letters": int((dead_letters < ledger).sum()),
        "lost": int(lost.size),
        "duplicated": int(below.size - unique.size),
        # A row above the ledger belongs to no commit; one that Kafka does not have came from
        # nowhere. Dead letters may run ahead: they commit first.
        "out_of_place": int((lake >= ledger).sum()) + int(elsewhere.size),
        "unknown": int((unique < log_start).sum()),
        "first_lost": int(lost[0]) if lost.size else None,
    }


class TopicMissingInKafkaError(PenstockError):
    """There is nothing to compare the lake with."""


def verify(
    settings: Settings,
    topics: Iterable[str] = (),
    *,
    on_progress: Callable[[str], None] = lambda _: None,
) -> VerificationResult:
    """Look at the named topics, or at every topic of which the lake's ledger knows."""
    kafka = Administration(settings.kafka)
    lake = Lake.at(settings.lake.root, settings.lake.storage_options)
    wanted = set(topics)
    there = kafka.topics(wanted or _carried_topics(settings, kafka))
    for missing in sorted(wanted - set(there)):
        raise TopicMissingInKafkaError(f"Kafka has no topic {missing}.")
    verdicts: list[PartitionVerdict] = []
    for topic in sorted(there):
        verdicts += _topic(settings, kafka, lake, there[topic], on_progress)
    return VerificationResult(tuple(verdicts))


def carried_so_far(settings: Settings, topics: Iterable[str] = ()) -> dict[TopicPartition, int]:
    """How far the ledger is, by partition: quick, and says nothing about the rows."""
    kafka = Administration(settings.kafka)
    lake = Lake.at(settings.lake.root, settings.lake.storage_options)
    found: dict[TopicPartition, int] = {}
    for topic in kafka.topics(set(topics) or _carried_topics(settings, kafka)).values():
        state = lake.table(settings.lake.table_of(topic.name).table)
        if state is not None:
            offsets = _ledger(state, settings.lake.group, topic)
            found |= {TopicPartition(topic.name, number): end for number, end in offsets.items()}
    return found


def _carried_topics(settings: Settings, kafka: Administration) -> set[str]:
    names = set(kafka.cluster().partition_counts) - set(settings.topics.names.all)
    return {name for name in names if not name.startswith("__")}


def _topic(
    settings: Settings,
    kafka: Administration,
    lake: Lake,
    topic: TopicView,
    on_progress: Callable[[str], None],
) -> list[PartitionVerdict]:
    table = settings.lake.table_of(topic.name).table
    state = lake.table(table)
    ledger = {} if state is None else _ledger(state, settings.lake.group, topic)
    if state is None or not ledger:
        return []
    on_progress(f"reading {topic.name} in the lake")
    rows = offsets_of_topic(lake, table, state, topic.name, topic.topic_id)
    # Dead letters commit before their table does: read after it, none of them is missed.
    dead: Mapping[int, Offsets] = {}
    dead_table = lake.table(settings.lake.dead_letters)
    if dead_table is not None:
        dead = offsets_of_topic(
            lake, settings.lake.dead_letters, dead_table, topic.name, topic.topic_id
        )
    places = [TopicPartition(topic.name, number) for number in sorted(ledger)]
    starts = kafka.start_offsets(places)
    is_compacted = "compact" in kafka.topic_settings([topic.name])[topic.name]["cleanup.policy"]
    verdicts = []
    for place in places:
        number = place.partition
        start, end = starts[place], ledger[number]
        on_progress(f"reading {place} in Kafka")
        there = _kafka_offsets(settings, place, min(start, end), end)
        lake_rows, letters = rows.get(number, NO_OFFSETS), dead.get(number, NO_OFFSETS)
        found = compare(there, lake_rows, letters, log_start=start, ledger=end)
        verdict = PartitionVerdict(topic.name, number, end, **found)  # type: ignore[arg-type] # the names are the fields
        verdicts.append(_forgiven(verdict, there, lake_rows, start) if is_compacted else verdict)
    return verdicts


def _forgiven(
    verdict: PartitionVerdict, kafka: Offsets, lake: Offsets, log_start: int
) -> PartitionVerdict:
    """Compaction removes records after they were carried: rows Kafka no longer has are no fault."""
    below = np.unique(lake[(lake < verdict.ledger) & (lake >= log_start)])
    gone = int(np.setdiff1d(below, kafka).size)
    values = asdict(verdict)
    values["unknown"] += gone
    values["out_of_place"] -= min(gone, verdict.out_of_place)
    return PartitionVerdict(**values)


def _ledger(state: TableState, group: str, topic: TopicView) -> dict[int, int]:
    begin = f"{group}/{topic.topic_id}/"
    return {
        int(name.removeprefix(begin)): offset
        for name, offset in state.transactions.items()
        if name.startswith(begin)
    }


def _kafka_offsets(settings: Settings, place: TopicPartition, start: int, end: int) -> Offsets:
    runs = [
        np.fromiter((record.offset for record in run), dtype=np.int64, count=len(run))
        for run in committed_records(settings.kafka, OffsetRange(place, start, end))
    ]
    return np.concatenate(runs) if runs else NO_OFFSETS
