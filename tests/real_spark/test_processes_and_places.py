"""Processes that die at each point of a batch, and every place where Spark can run."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit.lake.lake import Carrier, lake_settings, new_topic_name, produce
from penstock.laboratory.broker import EmbeddedKafka
from penstock.pipeline.connect_server import is_listening, spark_home
from penstock.processes import start_child, stop_all

pytestmark = [pytest.mark.broker, pytest.mark.spark]
MakeCarrier = Callable[..., Carrier]
HOST = "127.0.0.1"
TIMEOUT_S = 600


def _run(carrier: Carrier, topic: str, master: str, *more: str) -> subprocess.CompletedProcess[str]:
    settings = carrier.settings
    tests = str(Path(__file__).parents[1])
    return subprocess.run(
        [
            *(sys.executable, "-m", "kit.consumer.carry_process", settings.kafka.bootstrap_servers),
            *(settings.lake.root, master, topic, *more),
        ],
        env={**os.environ, "PYTHONPATH": tests, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _topic(carrier: Carrier) -> str:
    topic = new_topic_name("process")
    carrier.kafka.create_topic(topic, partitions=3)
    values = [f"value {number}".encode() for number in range(50)]
    produce(carrier.settings.kafka, topic, dict.fromkeys(range(3), values))
    return topic


@pytest.mark.parametrize("point", ["planned", "files-written", "before-commit", "committed"])
def test_killed_at_each_point_of_a_batch(make_carrier: MakeCarrier, point: str) -> None:
    """After kill -9 the next incarnation goes on from the ledger: nothing lost, nothing twice."""
    carrier = make_carrier(1, 2)
    topic = _topic(carrier)
    died = _run(carrier, topic, carrier.settings.spark.master, "1", point)
    assert died.returncode == -signal.SIGKILL, died.stderr
    already = 0 if point != "committed" else 150
    assert carrier.carry_all(topic).records == 150 - already
    verdict = carrier.verify(topic)
    assert verdict.is_exact
    assert sum(one.lake for one in verdict.partitions) == 150


@pytest.fixture
def onlooker(kafka: EmbeddedKafka, tmp_path: Path) -> Carrier:
    """Makes topics and verifies; has no Spark of its own."""
    return Carrier(lake_settings(kafka.settings, tmp_path / "lake", "local[2]"), None)


@pytest.mark.timeout(2 * TIMEOUT_S)
def test_in_its_own_process(onlooker: Carrier) -> None:
    """`local[2]`: a JVM of its own carries the same way, and dies with its process."""
    carrier = onlooker
    topic = _topic(carrier)
    died = _run(carrier, topic, "local[2]", "1", "files-written")
    assert died.returncode == -signal.SIGKILL, died.stderr
    lived = _run(carrier, topic, "local[2]", "2")
    assert lived.stdout.split() == ["150"], lived.stderr
    assert carrier.verify(topic).is_exact


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path: Path, spark_jars: None) -> Iterator[str]:
    """A standalone master and two workers, all real processes."""
    port = _free_port()
    master = f"spark://{HOST}:{port}"
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
    }
    program = str(spark_home() / "bin" / "spark-class")
    package = "org.apache.spark.deploy"
    started = [
        start_child(
            [
                *(program, f"{package}.master.Master"),
                *("--host", HOST, "--port", str(port), "--webui-port", "0"),
            ],
            log_file=tmp_path / "master.log",
            environment=environment,
        )
    ]
    deadline = time.monotonic() + 240
    while not is_listening(HOST, port) and time.monotonic() < deadline:
        time.sleep(0.1)
    started += [
        start_child(
            [
                *(program, f"{package}.worker.Worker", "--host", HOST, "--webui-port", "0"),
                *("--cores", "1", "--memory", "600m"),
                *("--work-dir", str(tmp_path / f"work-{number}"), master),
            ],
            log_file=tmp_path / f"worker-{number}.log",
            environment=environment,
        )
        for number in (1, 2)
    ]
    yield master
    stop_all(started, grace_s=10)


@pytest.mark.timeout(2 * TIMEOUT_S)
def test_on_a_standalone_cluster(onlooker: Carrier, cluster: str, tmp_path: Path) -> None:
    """A real master with two workers carries the records, and both workers took part."""
    carrier = onlooker
    topic = _topic(carrier)
    ran = _run(carrier, topic, cluster, "1")
    assert ran.stdout.split() == ["150"], ran.stderr
    assert carrier.verify(topic).is_exact
    for number in (1, 2):
        assert list((tmp_path / f"work-{number}").glob("app-*/*/stderr"))
