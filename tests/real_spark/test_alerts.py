"""A real group is harmed, and a real Prometheus and Alertmanager see it: the right alerts fire.

Monitor, controller and consumer are the real processes, on the tests' broker and Spark server. They
are found by the files that they write for Prometheus.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kit.lake.lake import new_topic_name
from kit.program import penstock
from kit.prometheus import Alerting, alerting
from kit.promtool import program, require_clean_metrics
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.metrics import of_controller as of
from penstock.pipeline.connect_server import ConnectServer
from penstock.processes import identity_of
from penstock.processes.owner import owner_as_text

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
WITHIN_S = 300.0
TRANSFORMATION = """
import os

def carried(records):
    if os.path.exists(os.environ["HARM_FILE"]):
        raise ValueError("harmed")
    return records
"""


@contextmanager
def running(log: Path, environment: dict[str, str], *arguments: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *arguments],
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def owner() -> Iterator[str]:
    """A process with which the consumers end: they outlive the controller that started them."""
    with subprocess.Popen(["sleep", "600"]) as process:
        identity = identity_of(process.pid)
        assert identity is not None
        try:
            yield owner_as_text(identity)
        finally:
            process.kill()


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline_s, what()
        time.sleep(0.5)  # everything here has a period of a second


class Producing:
    """Writes a few records to both partitions whenever it is asked."""

    def __init__(self, kafka: EmbeddedKafka, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        self._topic = topic

    def some(self) -> None:
        for number in range(20):
            self._producer.produce(self._topic, b"x" * 100, partition=number % 2)
        self._producer.flush()


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    name = new_topic_name("alerts")
    Administration(kafka.settings).create_topic(name, partitions=2)
    return name


@pytest.fixture
def environment(
    kafka: EmbeddedKafka, spark_server: ConnectServer, topic: str, tmp_path: Path
) -> dict[str, str]:
    (tmp_path / "harmed_orders.py").write_text(TRANSFORMATION)
    chosen = {
        "KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "TOPICS__PREFIX": topic,
        "LAKE__GROUP": topic,
        "LAKE__ROOT": str(tmp_path / "lake"),
        "LAKE__TABLES": json.dumps({topic: {"transformation": "harmed_orders:carried"}}),
        "MONITOR__INCLUDE": json.dumps([topic]),
        "CONTROLLER__DIRECTORY": str(tmp_path / "group"),
        "CONTROLLER__CONSUMERS_MAX": "1",
        "SPARK__MASTER": spark_server.master,
        "TELEMETRY__METRICS_TARGETS": str(tmp_path / "targets"),
        "TELEMETRY__FRESHNESS_OBJECTIVE": "15s",
        "LOG__FORMAT": "json",
    }
    return {
        **os.environ,
        **{f"PENSTOCK_{name}": value for name, value in chosen.items()},
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        "HARM_FILE": str(tmp_path / "harm"),
    }


def test_a_harmed_group_fires_the_right_alerts(
    kafka: EmbeddedKafka, topic: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Nothing while all is well; then a stopped partition, an old topic, a controller that is gone.

    And what the three processes answer is clean by Prometheus's own check.
    """
    for name in ("prometheus", "prometheus-alertmanager"):
        program(name)
    assert penstock("topics", "create", environment=environment).returncode == 0
    targets = tmp_path / "targets"
    targets.mkdir()
    producing = Producing(kafka, topic)
    with (
        owner() as name_of_owner,
        running(tmp_path / "monitor.log", environment, "monitor"),
        alerting(tmp_path, targets) as seen,
    ):
        controller = ("controller", "--ends-with", name_of_owner)
        with running(tmp_path / "controller.log", environment, *controller):
            until(lambda: is_well(producing, seen, topic), lambda: told(seen, tmp_path))
            for name in ("monitor", "controller", "consumer-1"):
                require_clean_metrics(scraped(targets / f"{name}.json"))
            (tmp_path / "harm").touch()
            until(lambda: is_harmed(producing, seen, topic), lambda: told(seen, tmp_path))
            # On a busy machine one scrape may fail: such an alert passes.
            until(
                lambda: "PenstockControllerSilent" not in seen.firing(),
                lambda: told(seen, tmp_path),
            )
        until(lambda: "PenstockControllerSilent" in seen.firing(), lambda: told(seen, tmp_path))
        assert seen.firing()["PenstockControllerSilent"]["group"] == topic


def is_well(producing: Producing, seen: Alerting, topic: str) -> bool:
    """The lake is fresh although records keep coming, and nobody would be told of anything."""
    producing.some()
    age_s = seen.value(of.TOPIC_FRESHNESS.name).get(topic)
    carried = sum(seen.value("penstock_carried_records_total").values())
    return age_s is not None and age_s < 15 and carried > 100 and seen.firing() == {}


def is_harmed(producing: Producing, seen: Alerting, topic: str) -> bool:
    producing.some()
    firing = seen.firing()
    stopped = firing.get("PenstockPartitionStopped", {})
    if stopped:
        assert (stopped["topic"], stopped["reason"]) == (topic, "transformation_failed")
    old = firing.get("PenstockFreshnessOverObjective", {})
    return bool(stopped) and old.get("topic") == topic


def scraped(target: Path) -> str:
    (one,) = json.loads(target.read_text())
    url = f"http://{one['targets'][0]}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def told(seen: Alerting, folder: Path) -> str:
    logs = [(folder / f"{name}.log").read_text()[-2000:] for name in ("monitor", "controller")]
    logs += [one.read_text()[-3000:] for one in folder.glob("group/consumer-*/consumer.log")]
    return "\n".join([str(seen.firing()), str(seen.value(of.TOPIC_FRESHNESS.name)), *logs])
