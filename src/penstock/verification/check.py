"""Compares the records that Kafka has below the ledger's offset with those in the lake.

Partition by partition, by offset and by a checksum of key and value. Offsets may be sparse
(transaction markers, aborted records, compaction), so sets of offsets are compared, never counts
with distances. What retention or compaction has removed from Kafka since it was carried cannot be
compared any more: it is counted apart and is no fault. A log that ends below the ledger is one:
records were lost in Kafka, and new ones may have taken their offsets.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration, TopicView
from penstock.kafka_io.committed_records import committed_records
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.leader_epochs import EpochEndReader
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.model import OffsetRange, TopicPartition
from penstock.settings import Settings
from penstock.verification.delta_log import TableState
from penstock.verification.lake_records import Lake, RowsAmbiguousError, records_of_topic
from penstock.verification.records import Records, checksums_of


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """What was found in one partition.

    `kafka` counts committed records below the ledger; `unknown` rows whose records Kafka no longer
    has; `truncated` offsets below the ledger that Kafka's log has lost at its end; `changed` rows
    whose key or value differs from Kafka's (None when only offsets were compared); `left_out`
    records without a row, in a table whose transformation may leave some out.
    """

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
    truncated: int = 0
    changed: int | None = None
    first_lost: int | None = None
    left_out: int = 0

    @property
    def is_exact(self) -> bool:
        faults = (self.lost, self.duplicated, self.out_of_place, self.truncated, self.changed)
        return not any(faults)


@dataclass(frozen=True, slots=True)
class VerificationResult:
    partitions: tuple[PartitionVerdict, ...]
    # Per topic, ids under which a topic of this name was carried before it was made again.
    earlier_topic_ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Topics and partitions that Kafka does not let us read now, with the reason.
    unchecked: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """True if there is at least one partition, and all were checked and are exact."""
        is_whole = bool(self.partitions) and not self.unchecked
        return is_whole and all(one.is_exact for one in self.partitions)

    def as_data(self) -> dict[str, Any]:
        rows = [{**asdict(one), "exact": one.is_exact} for one in self.partitions]
        earlier = {topic: list(ids) for topic, ids in self.earlier_topic_ids.items()}
        return {
            "exact": self.is_exact,
            "partitions": rows,
            "earlier_topic_ids": earlier,
            "unchecked": dict(self.unchecked),
        }


# What `rows` of a table's settings allows.
_SEVERAL_ROWS = frozenset({"at_least_one", "any"})
_NO_ROW = frozenset({"at_most_one", "any"})


def compare(
    kafka: Records,
    lake: Records,
    dead_letters: Records,
    *,
    log_start: int,
    log_end: int,
    ledger: int,
    epoch_end: int | None = None,
    rows: str = "one",
) -> dict[str, int | None]:
    """The law itself: every committed record below the ledger is in the lake once. Pure.

    `epoch_end` is where the leader epoch ends under which the ledger was last moved; negative if
    Kafka has forgotten that epoch, None if it is not known. A log may have lost records and have
    grown past the ledger again: then the epoch ends below it.

    `rows` is what the settings say of the table. Several rows of one record are no fault where they
    are meant, but a record is never a row and a dead letter. Records without a row are only counted
    where some are left out on purpose: which of them are, nobody but the transformation can tell.
    """
    placed = np.unique(lake.offsets) if rows in _SEVERAL_ROWS else lake.offsets
    stored = np.concatenate([placed, dead_letters.offsets])
    below = stored[stored < ledger]
    unique = np.unique(below)
    lost = np.setdiff1d(kafka.offsets, unique)
    in_log = (unique >= log_start) & (unique < log_end)
    elsewhere = np.setdiff1d(unique[in_log], kafka.offsets)
    missing, is_left_out = int(lost.size), rows in _NO_ROW
    return {
        "kafka": int(kafka.offsets.size),
        "lake": int((lake.offsets < ledger).sum()),
        "dead_letters": int((dead_letters.offsets < ledger).sum()),
        "lost": 0 if is_left_out else missing,
        "left_out": missing if is_left_out else 0,
        "duplicated": int(below.size - unique.size),
        # A row above the ledger belongs to no commit; a row that Kafka does not have has no
        # origin. Dead letters may run ahead: they commit first.
        "out_of_place": int((lake.offsets >= ledger).sum()) + int(elsewhere.size),
        "unknown": int((unique < log_start).sum()),
        "truncated": max(0, ledger - min(log_end, _kept_up_to(epoch_end, log_start, ledger))),
        "changed": _changed(kafka, lake, dead_letters),
        "first_lost": int(lost[0]) if missing and not is_left_out else None,
    }


def _kept_up_to(epoch_end: int | None, log_start: int, ledger: int) -> int:
    """How far the log is still the one that was carried, as far as its epochs tell."""
    if epoch_end is None or ledger <= log_start:
        return ledger
    return epoch_end if epoch_end >= 0 else log_start


def _changed(kafka: Records, lake: Records, dead_letters: Records) -> int | None:
    rows = lake.changed_from(kafka)
    letters = dead_letters.without_empty().changed_from(kafka)
    return (rows or 0) + letters if letters else rows


class TopicMissingInKafkaError(PenstockError):
    """The topic does not exist in Kafka, so the lake cannot be compared."""


def verify(
    settings: Settings,
    topics: Iterable[str] = (),
    *,
    offsets_only: bool = False,
    on_progress: Callable[[str], None] = lambda _: None,
) -> VerificationResult:
    """Check the named topics, or every topic in the lake's ledger.

    `offsets_only` is quicker and does not compare keys and values.
    """
    kafka = Administration(settings.kafka)
    lake = Lake.at(settings.lake.root, settings.lake.storage_options)
    wanted = set(topics)
    found = kafka.look_up_topics(wanted or _carried_topics(settings, kafka))
    for name, error in sorted(found.failures.items()):
        if name in wanted and isinstance(error, TopicMissingError):
            raise TopicMissingInKafkaError(f"Kafka has no topic {name}.")
    check = _Check(settings, kafka, lake, with_content=not offsets_only, on_progress=on_progress)
    verdicts: list[PartitionVerdict] = []
    for topic in sorted(found.topics):
        verdicts += check.topic(found.topics[topic])
    check.note_failures(found.failures)
    return VerificationResult(tuple(verdicts), check.earlier_topic_ids(), check.unchecked)


def carried_so_far(settings: Settings, topics: Iterable[str] = ()) -> dict[TopicPartition, int]:
    """The ledger's offset of each partition; quick, because it does not check the rows."""
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


@dataclass(slots=True)
class _Check:
    """One run of the check over several topics."""

    settings: Settings
    kafka: Administration
    lake: Lake
    with_content: bool
    on_progress: Callable[[str], None]
    unchecked: dict[str, str] = field(default_factory=dict)
    _states: dict[str, TableState] = field(default_factory=dict)

    def note_failures(self, failures: Mapping[Any, PenstockError]) -> None:
        """One that vanished meanwhile needs no check any more."""
        for name, error in failures.items():
            if not isinstance(error, TopicMissingError):
                self.unchecked[str(name)] = str(error)

    def topic(self, topic: TopicView) -> list[PartitionVerdict]:
        table = self.settings.lake.table_of(topic.name).table
        group = self.settings.lake.group
        state = self.lake.table(table)
        if state is None:
            return []
        self._states[topic.name] = state
        ledger = _ledger(state, group, topic)
        if not ledger and not any(path.startswith(f"data/{group}/") for path in state.files):
            return []
        self.on_progress(f"reading {topic.name} in the lake")
        try:
            rows = self._rows(table, state, topic, is_alone=_is_alone(state, topic))
        except RowsAmbiguousError as error:
            self.unchecked[topic.name] = str(error)
            return []
        # A row whose partition is in nobody's ledger belongs to no commit.
        ledger |= dict.fromkeys(set(rows) - set(ledger) - _carried_by_others(state, topic), 0)
        # Dead letters commit before their table does: read after it, none of them is missed.
        dead_letters = self.settings.lake.dead_letter_table
        dead_state = self.lake.table(dead_letters)
        dead = {}
        if dead_state is not None:
            dead = self._rows(dead_letters, dead_state, topic, group=group)
        places = [TopicPartition(topic.name, number) for number in sorted(ledger)]
        starts = self.kafka.look_up_offsets(places, LogPosition.START, waits_for_leaders=True)
        ends = self.kafka.look_up_offsets(places, LogPosition.END, waits_for_leaders=True)
        self.note_failures({**starts.failures, **ends.failures})
        log_ends, epoch_ends = ends.offsets, self._epoch_ends(state, topic, places)
        policies = self.kafka.topic_settings([topic.name])[topic.name]["cleanup.policy"]
        verdicts = []
        for place in places:
            if place not in starts.offsets or place not in log_ends:
                continue
            number = place.partition
            start, end = starts.offsets[place], ledger[number]
            self.on_progress(f"reading {place} in Kafka")
            there = self._kafka_records(place, min(start, end), min(end, log_ends[place]))
            in_lake = rows.get(number, Records.none())
            found = compare(
                there,
                in_lake,
                dead.get(number, Records.none()),
                log_start=start,
                log_end=log_ends[place],
                ledger=end,
                epoch_end=epoch_ends.get(place),
                rows=self.settings.lake.table_of(topic.name).rows,
            )
            verdict = PartitionVerdict(topic.name, number, end, **found)  # type: ignore[arg-type] # the names are the fields
            if "compact" in policies:
                verdict = _without_compacted(verdict, there, in_lake, start)
            verdicts.append(verdict)
        return verdicts

    def _rows(
        self, table: str, state: TableState, topic: TopicView, **options: Any
    ) -> dict[int, Records]:
        return records_of_topic(
            self.lake,
            table,
            state,
            topic.name,
            topic.topic_id,
            with_content=self.with_content,
            **options,
        )

    def _epoch_ends(
        self, state: TableState, topic: TopicView, places: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Where the log ends of the leader epoch that the ledger has beside each offset."""
        begin = f"leader-epoch/{self.settings.lake.group}/{topic.topic_id}/"
        stored = {place: state.transactions.get(f"{begin}{place.partition}") for place in places}
        # One more than the epoch; 0 says that it is not known.
        epochs = {place: number - 1 for place, number in stored.items() if number}
        reader = EpochEndReader(self.settings.kafka)
        try:
            found = reader.look_up(epochs)
        finally:
            reader.close()
        # Offsets alone do not show a log that lost records and grew again.
        self.note_failures(found.failures)
        return found.offsets

    def _kafka_records(self, place: TopicPartition, start: int, end: int) -> Records:
        parts = []
        wanted = OffsetRange(place, start, max(start, end))
        for run in committed_records(self.settings.kafka, wanted):
            offsets = np.fromiter((one.offset for one in run), dtype=np.int64, count=len(run))
            checksums = None
            if self.with_content:
                checksums = checksums_of(((one.key, one.value) for one in run), len(run))
            parts.append(Records(offsets, checksums))
        return Records.joined(parts)

    def earlier_topic_ids(self) -> dict[str, list[str]]:
        """Ids in the ledger of a topic's table that no topic in Kafka has any more.

        Empty while the id of some topic is not known: it could be one of them.
        """
        described = self.kafka.look_up_topics(self.kafka.cluster().partition_counts)
        if any(not isinstance(one, TopicMissingError) for one in described.failures.values()):
            return {}
        living = {view.topic_id for view in described.topics.values()}
        begin = f"{self.settings.lake.group}/"
        found: dict[str, list[str]] = {}
        for topic, state in self._states.items():
            named = {
                name.removeprefix(begin).split("/")[0]
                for name in state.transactions
                if name.startswith(begin) and name.count("/") == 2
            }
            gone = sorted(named - living - {"compaction"})
            if gone:
                found[topic] = gone
        return found


def _without_compacted(
    verdict: PartitionVerdict, kafka: Records, lake: Records, log_start: int
) -> PartitionVerdict:
    """Compaction removes records after they were carried: rows Kafka no longer has are no fault."""
    below = np.unique(lake.offsets[(lake.offsets < verdict.ledger) & (lake.offsets >= log_start)])
    gone = int(np.setdiff1d(below, kafka.offsets).size)
    values = asdict(verdict)
    values["unknown"] += gone
    values["out_of_place"] -= min(gone, verdict.out_of_place)
    return PartitionVerdict(**values)


def _is_alone(state: TableState, topic: TopicView) -> bool:
    """Whether the table's ledger has entries of this topic only, whoever wrote them."""
    named = {parts[1] for name in state.transactions if len(parts := name.split("/")) == 3}
    return named <= {topic.topic_id, "compaction"}


def _carried_by_others(state: TableState, topic: TopicView) -> set[int]:
    """The partitions of the topic that are in the ledger of any group."""
    return {
        int(parts[2])
        for name in state.transactions
        if len(parts := name.split("/")) == 3 and parts[1] == topic.topic_id
    }


def _ledger(state: TableState, group: str, topic: TopicView) -> dict[int, int]:
    begin = f"{group}/{topic.topic_id}/"
    return {
        int(name.removeprefix(begin)): offset
        for name, offset in state.transactions.items()
        if name.startswith(begin)
    }
