"""Nobody sets a number, and all consumers share a Spark server that is full: the group stays small.

The server has one core, and the transformation takes 2 ms for each record: all consumers together
carry no more than 500 records a second, however many they are. More than that waits and is written.
So each consumer measures the less, the more of them there are.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.group.live_group import LiveGroup, working
from kit.group.slow_transformation import SECONDS_PER_RECORD
from kit.processes import processes_naming
from penstock.jars import USUAL_SETS, fetch
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import small_broker
from penstock.laboratory.load import RecordForm, RecordMaker
from penstock.local_group import LocalGroup
from penstock.model import TopicPartition
from penstock.settings import load_settings

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(900),
]
TOPIC = "slow"
PARTITIONS = 12
RECORD_BYTES = 1000
WAITING_RECORDS = 20_000
WRITTEN_PER_S = 700
WATCHED_S = 300.0
# Without a bound by what helps, the group has as many as it may.
CONSUMERS_MAX = 8
# One consumer can keep the core busy; others use the time of its commits.
THAT_HELP = 3


@pytest.fixture
def group(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalGroup]:
    """Started by the test, when the records wait."""
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    folder = tmp_path_factory.mktemp("saturated")
    where = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", f"{where}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with small_broker(folder / "broker") as broker:
        flags = {
            "kafka.bootstrap_servers": broker.bootstrap_servers,
            "controller.directory": str(folder / "group"),
            "controller.consumers_max": str(CONSUMERS_MAX),
            "controller.growth_settle": "30s",
            "lake.root": str(folder / "lake"),
            "lake.tables": f'{{"{TOPIC}": {{"transformation":'
            ' "kit.group.slow_transformation:slowly",'
            ' "columns": ["partition", "offset", "late"]}}',
            "spark.master": "local[1]",
        }
        given = [text for name, value in flags.items() for text in ("--set", f"{name}={value}")]
        settings = load_settings(flags=flags, environment={}).settings
        yield LocalGroup(settings, given, start_broker=None, embedded_spark=True)
    assert processes_naming(str(folder)) == []


class Writer:
    """Writes records in turns to the partitions."""

    def __init__(self, group: LocalGroup) -> None:
        self.written = 0
        self._maker = RecordMaker(RecordForm(RECORD_BYTES), TOPIC, seed=1)
        self._producer = RecordProducer(group.settings.kafka, **{"linger.ms": 50})

    def write(self, records: int) -> None:
        at_ms = time.time_ns() // 1_000_000
        for number in range(self.written, self.written + records):
            place = TopicPartition(TOPIC, number % PARTITIONS)
            key, value = self._maker.record(place, number // PARTITIONS, at_ms)
            self._producer.send(TOPIC, place.partition, value, key=key)
        self.written += records
        assert self._producer.flush(60) == 0


def told(status: dict[str, Any]) -> str:
    return "\n".join(str(one) for one in status["history"])


def test_a_saturated_spark_server_does_not_make_the_group_grow(group: LocalGroup) -> None:
    """Growth that does not help is taken back, and capacities do not fall with each try."""
    Administration(group.settings.kafka).create_topic(TOPIC, partitions=PARTITIONS)
    writer = Writer(group)
    writer.write(WAITING_RECORDS)
    with group:
        live = LiveGroup(group)
        began_s, written_s = time.monotonic(), 0.0
        status: dict[str, Any] = {}
        sizes: list[int] = []
        while (at_s := time.monotonic() - began_s) < WATCHED_S:
            writer.write(int(WRITTEN_PER_S * (at_s - written_s)))
            written_s = at_s
            status = live.status() or status
            if status:
                sizes.append(working(status))
            time.sleep(0.5)
        figure = status["capacity"]["topics"][TOPIC]
    together = RECORD_BYTES / SECONDS_PER_RECORD
    assert figure["source"] == "measured"
    assert working(status) <= THAT_HELP, told(status)
    is_taken_back = any(one["code"] == "growth_did_not_help" for one in status["history"])
    assert is_taken_back or max(sizes) <= THAT_HELP, told(status)
    # What consumers of a group of that size measure, and not those of a larger one.
    assert figure["bytes_per_s"] >= 0.5 * together / THAT_HELP, told(status)
