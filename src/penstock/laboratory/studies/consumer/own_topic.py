"""Lets one consumer alone carry a topic that exists, and says what it carried.

It reads the user's Kafka and writes into a corner of the user's lake, which is removed again, as
are the control topics that the study makes.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.laboratory.studies.consumer.studied_consumer import CONSUMER, StudiedConsumer
from penstock.messages import ConsumerReport, CycleMeasurement
from penstock.model import TopicPartition
from penstock.pipeline.trial import corner
from penstock.settings import Settings
from penstock.settings.tree import OptionPath
from penstock.topics import control_topics

# One batch shows how long Spark takes to warm up.
BATCHES_NEEDED = 2


@dataclass(frozen=True, slots=True)
class TopicFinding:
    """What one consumer carried of the topic, in bytes of log a second.

    `at_least` says that it was not behind for long enough to show more.
    """

    topic: str
    log_bytes_per_s: float
    at_least: bool
    lowest_bytes_per_s: float
    highest_bytes_per_s: float
    records: int
    seconds: float
    whole: bool


def study_topic(
    settings: Settings,
    topic: str,
    *,
    seconds_max: float,
    secret_files: Mapping[OptionPath, str] | None = None,
) -> TopicFinding:
    """Carry the topic, which is there, from its begin, to its end or for so long.

    `secret_files` are the files that secrets of the settings came from.
    """
    administration = Administration(settings.kafka)
    partitions = administration.topics([topic])[topic].partitions
    places = [TopicPartition(topic, number) for number in range(partitions)]
    ends = dict(administration.look_up_offsets(places, LogPosition.STABLE_END).offsets)
    topics = settings.topics.model_copy(update={"prefix": f"study-{os.getpid()}-{time.time_ns()}"})
    with (
        tempfile.TemporaryDirectory(prefix="penstock-study-") as folder,
        corner(settings.lake) as lake,
    ):
        changed = settings.model_copy(update={"topics": topics, "lake": lake})
        try:
            studied = StudiedConsumer(changed, Path(folder), secret_files or {})
            return _studied(studied, topic, ends, seconds_max)
        finally:
            for one in control_topics(topics, highest_consumer_id=CONSUMER):
                administration.delete_topic(one.name)


def _studied(
    consumer: StudiedConsumer,
    topic: str,
    ends: dict[TopicPartition, int],
    seconds_max: float,
) -> TopicFinding:
    with consumer as studied:
        studied.command_start(sorted(ends))
        began_s = time.monotonic()

        def is_over() -> bool:
            is_late = time.monotonic() - began_s > seconds_max
            return is_late or (bool(studied.reports) and _is_whole(studied.reports[-1], ends))

        studied.wait("the topic to be carried", is_over, 2 * seconds_max + 60)
        reports, seconds = list(studied.reports), time.monotonic() - began_s
    return finding_of(topic, reports, seconds, whole=_is_whole(reports[-1], ends))


def _is_whole(report: ConsumerReport, ends: dict[TopicPartition, int]) -> bool:
    reached = {row.topic_partition: row.next_offset or 0 for row in report.owned}
    return all(reached.get(place, 0) >= end for place, end in ends.items())


def finding_of(
    topic: str, reports: list[ConsumerReport], seconds: float, *, whole: bool
) -> TopicFinding:
    """What the reports say: the last figure, and the least and most of all of them.

    A topic that is carried in a few batches shows only what these carried in their own time.
    """
    # The other parts of a report repeat what is not about partitions.
    cycles = [one.cycle for one in reports if one.cycle is not None and one.part == 1]
    rows = [row for one in reports for row in one.topic_capacities if row.topic == topic]
    full = [x for row in rows if (x := row.capacity_log_bytes_per_s) is not None]
    least = [x for row in rows if (x := row.at_least_log_bytes_per_s) is not None]
    found = full or least or (_carried_by_few(cycles) if whole else [])
    if not found and not whole:
        waiting = reports[-1].waits_for if reports else None
        why = "" if waiting is None else f" It waits for {waiting.what.value}."
        raise PenstockError(
            f"The consumer carried too little of {topic} in {seconds:.0f} s to be measured.{why}",
            remedy="Check that Kafka, the lake and Spark answer (`penstock doctor`), or give it "
            "longer: --for 5m.",
        )
    if not found:
        raise PenstockError(
            f"{topic} has too few records: the consumer was not behind for long enough.",
            remedy="Write more, or let the group measure it while it runs.",
        )
    return TopicFinding(
        topic=topic,
        log_bytes_per_s=found[-1],
        at_least=not full,
        lowest_bytes_per_s=min(found),
        highest_bytes_per_s=max(found),
        records=sum(one.records for one in cycles),
        seconds=seconds,
        whole=whole,
    )


def _carried_by_few(cycles: Iterable[CycleMeasurement]) -> list[float]:
    """What all batches carried in the time that they took, Spark's warming up included."""
    cycles = list(cycles)
    took_s = sum(x.read_ms + x.transform_ms + x.write_ms + x.commit_ms for x in cycles) / 1000
    is_enough = sum(one.batches for one in cycles) >= BATCHES_NEEDED and took_s > 0
    return [sum(one.log_bytes for one in cycles) / took_s] if is_enough else []
