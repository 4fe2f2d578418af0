"""Records that nobody reads: a real broker, monitor and controller, and no consumer that comes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kit.program import penstock
from penstock.cli.status import NOT_WELL
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka

pytestmark = [pytest.mark.broker, pytest.mark.timeout(240)]
PROGRAM = Path(__file__).parents[1] / "kit" / "controller" / "controller_of_one.py"
RECORDS = 20_000
WITHIN_S = 240.0


@contextmanager
def running(log: Path, environment: dict[str, str], *command: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_what_waits_is_behind_although_nobody_reads(broker_jars: None, tmp_path: Path) -> None:
    """20,000 records wait, no consumer is up: `behind` counts them, and the exit code says 9."""
    with EmbeddedKafka() as kafka:
        Administration(kafka.settings).create_topic("orders", partitions=2)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(RECORDS):
            producer.produce("orders", b"x" * 100, partition=number % 2)
            producer.poll(0)
        producer.flush()
        variables = {
            "PENSTOCK_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "PENSTOCK_CONTROLLER__DIRECTORY": str(tmp_path / "group"),
            "PENSTOCK_LAKE__ROOT": str(tmp_path / "lake"),
            "PENSTOCK_LOG__FORMAT": "json",
        }
        assert penstock("topics", "create", environment=variables).returncode == 0
        controller, monitor = tmp_path / "controller.log", tmp_path / "monitor.log"
        with (
            running(monitor, variables, "-m", "penstock", "monitor"),
            running(controller, variables, str(PROGRAM)),
        ):
            found = _status(variables)
            deadline_s = time.monotonic() + WITHIN_S
            while found.get("behind_records") != RECORDS:
                assert time.monotonic() < deadline_s, found
                time.sleep(1)  # the monitor measures once a second
                found = _status(variables)
            shown = penstock("status", environment=variables)
            assert f"behind at most {RECORDS:,}" in shown.stdout
            assert shown.returncode == NOT_WELL
        said = [json.loads(line) for line in controller.read_text().splitlines() if line[:1] == "{"]
        assert "partition_appeared" in {line["code"] for line in said if line["event"] == "decided"}


def _status(variables: dict[str, str]) -> dict[str, Any]:
    done = penstock("status", "-o", "json", environment=variables)
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    return found
