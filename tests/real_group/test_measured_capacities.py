"""Nobody sets a number: a group measures what it carries of topics that cost differently.

Three topics, whose capacities differ by ten and more: plain records, records that zstd makes very
small, and records with a slow transformation. Records wait in all of them when the group starts;
then all are written at a steady speed. What the group has measured after that is compared with what
`penstock study consumer` measures of each topic alone, on the same broker, right after it.
"""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.group.live_group import LiveGroup, working
from kit.processes import processes_naming
from penstock.jars import USUAL_SETS, fetch
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import small_broker
from penstock.laboratory.load import RecordForm, RecordMaker
from penstock.laboratory.studies.consumer.own_topic import study_topic
from penstock.local_group import LocalGroup
from penstock.model import TopicPartition
from penstock.settings import load_settings

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(1200),
]
PARTITIONS = 4
WITHIN_S = 300.0
# Size and freshness are judged in each look of the last minute.
JUDGED_S = 60.0
ALIKE = 0.2
STUDY_S = 45.0
# By topic: how many records wait, their size, and whether zstd makes them small. So many that each
# topic is still behind when the group has warmed up.
WAITING = {
    "plain": (2_500_000, 1000, False),
    "packed": (10_000_000, 1000, True),
    "slow": (60_000, 1000, False),
}
# Records a second that are written while the group is watched.
STEADY = {"plain": 800, "packed": 4_000, "slow": 200}


class Writer:
    """Writes records of one topic, in turns to its partitions."""

    def __init__(self, group: LocalGroup, topic: str) -> None:
        _, size, compressible = WAITING[topic]
        self.topic = topic
        self.written = 0
        self._maker = RecordMaker(RecordForm(size, compressible=compressible), topic, seed=1)
        self._producer = RecordProducer(
            group.settings.kafka,
            **{
                "compression.type": "zstd" if compressible else "none",
                "queue.buffering.max.messages": 200_000,
                "batch.size": 512 * 1024,
                "linger.ms": 50,
            },
        )

    def write(self, records: int) -> None:
        at_ms = time.time_ns() // 1_000_000
        for number in range(self.written, self.written + records):
            place = TopicPartition(self.topic, number % PARTITIONS)
            key, value = self._maker.record(place, number // PARTITIONS, at_ms)
            self._producer.send(self.topic, place.partition, value, key=key)
            if not number % 5_000:
                self._producer.poll()
        self.written += records

    def flush(self) -> None:
        assert self._producer.flush(60) == 0


@pytest.fixture
def group(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalGroup]:
    """Started by the test, when the records wait."""
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    folder = tmp_path_factory.mktemp("capacities")
    where = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", f"{where}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with small_broker(folder / "broker") as broker:
        flags = {
            "kafka.bootstrap_servers": broker.bootstrap_servers,
            "controller.directory": str(folder / "group"),
            "lake.root": str(folder / "lake"),
            "lake.tables": '{"slow": {"transformation": "kit.group.slow_transformation:slowly",'
            ' "columns": ["partition", "offset", "late"]}}',
        }
        given = [text for name, value in flags.items() for text in ("--set", f"{name}={value}")]
        settings = load_settings(flags=flags, environment={}).settings
        yield LocalGroup(settings, given, start_broker=None, embedded_spark=True)
    assert processes_naming(str(folder)) == []


def figures(status: dict[str, Any]) -> dict[str, tuple[float, str]]:
    found = status["capacity"]["topics"]
    return {topic: (found[topic]["bytes_per_s"], found[topic]["source"]) for topic in WAITING}


def certain_age_s(status: dict[str, Any]) -> float:
    """How old what is written is at least before it is in the lake."""
    found: float = status["freshness_s"] or status["freshness_at_least_s"] or 0.0
    return found


def fewest(status: dict[str, Any]) -> int:
    """The consumers that carry what is written, by the capacities that were measured."""
    shares = 0.0
    for name, one in status["partitions"].items():
        capacity = status["capacity"]["topics"][name.rpartition("-")[0]]["bytes_per_s"]
        shares += (one["write_speed_bytes_per_s"] or 0.0) / capacity
    return max(1, math.ceil(shares))


def test_three_topics_that_cost_differently_are_measured(group: LocalGroup) -> None:
    """Within five minutes, to a fifth; the group is the fewest or one more, and fresh."""
    # With the group its Spark server ends; the study then starts one of its own.
    settings_alone = group.settings
    administration = Administration(group.settings.kafka)
    writers = []
    for topic, (records, _, _) in WAITING.items():
        administration.create_topic(topic, partitions=PARTITIONS)
        writer = Writer(group, topic)
        writer.write(records)
        writer.flush()
        writers.append(writer)
    os.sync()  # the disk would write them out while the first batches are measured
    with group:
        live = LiveGroup(group)
        began_s, written_s = time.monotonic(), 0.0
        status: dict[str, Any] = {}
        judged: list[dict[str, Any]] = []
        while (at_s := time.monotonic() - began_s) < WITHIN_S:
            for writer in writers:
                writer.write(int(STEADY[writer.topic] * (at_s - written_s)))
            written_s = at_s
            status = live.status() or status
            if at_s > WITHIN_S - JUDGED_S:
                judged.append(status)
            time.sleep(0.5)
        for writer in writers:
            writer.flush()
        measured = figures(status)
        assert all(working(one) <= fewest(one) + 1 for one in judged), status["consumers"]
        assert max(map(certain_age_s, judged)) <= group.settings.objective.freshness, status
        assert {source for _, source in measured.values()} == {"measured"}, measured
        for writer in writers:
            live.produced |= {
                f"{writer.topic}-{number}": (writer.written + PARTITIONS - 1 - number) // PARTITIONS
                for number in range(PARTITIONS)
            }
        assert live.drained(*WAITING).is_exact
    highest, lowest = (choose(one for one, _ in measured.values()) for choose in (max, min))
    assert highest > 10 * lowest, measured
    alone = {
        topic: study_topic(settings_alone, topic, seconds_max=STUDY_S).log_bytes_per_s
        for topic in WAITING
    }
    ratios = {topic: measured[topic][0] / alone[topic] for topic in WAITING}
    assert all(abs(ratio - 1) <= ALIKE for ratio in ratios.values()), (ratios, measured, alone)
