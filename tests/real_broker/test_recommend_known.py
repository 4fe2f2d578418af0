"""`penstock recommend` beside a group that has measured what one consumer carries."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kit.controller.whole_status import whole_status
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.status_topic import StatusPublisher
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages.status_records import status_parts
from penstock.settings import Settings, changed_settings

pytestmark = pytest.mark.broker
FIGURES = ("bytes_per_s", "measured_bytes_per_s", "lowest_bytes_per_s", "highest_bytes_per_s")


def test_what_a_group_has_measured_counts(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Its status is in Kafka: 20 kB/s of a topic are too much for one consumer of 12 kB/s."""
    at = ("--bootstrap-server", kafka.bootstrap_servers)
    load = [sys.executable, "-m", "penstock", "load", "dear=20kB/s", "--create", "4"]
    mine = (*at, "--set", "monitor.include=[dear]", "--set", "topics.prefix=measured")
    names = {"kafka.bootstrap_servers": kafka.bootstrap_servers, "topics.prefix": "measured"}
    settings = changed_settings(Settings(), names)
    with subprocess.Popen(
        [*load, "--duration", "5m", *at], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as writer:
        try:
            deadline_s = time.monotonic() + 180
            while "dear" not in Administration(settings.kafka).topics(["dear"]):
                assert time.monotonic() < deadline_s
                time.sleep(0.5)  # until `load` has made it
            watch = ("recommend", "--for", "10s", *mine, "-o", "json")
            given = penstock(*watch, "--calibrated", "dear=1MB/s", cwd=tmp_path)
            publish(settings)
            measured = penstock(*watch, "--calibrated", "dear=1MB/s", cwd=tmp_path)
        finally:
            writer.kill()
    before, after = found(given), found(measured)
    assert (before["capacity"]["source"], before["consumers_highest"]) == ("calibrated", 1)
    assert (after["capacity"]["source"], after["capacity_bytes_per_s"]) == ("measured", 12e3)
    # How many more depends on how evenly a busy machine writes.
    assert after["consumers_highest"] >= 2
    assert not after["capacity_is_assumed"]
    assert "what one consumer carries of 1 topic" in measured.stderr


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def publish(settings: Settings) -> None:
    """As a controller does."""
    make_control_topics(settings)
    row = {"source": "measured", **dict.fromkeys(FIGURES, 12e3)}
    capacity = {"bytes_per_s": 12e3, "source": "measured", "topics": {"dear": row}}
    status = whole_status(controller_epoch=1, capacity=capacity)
    publisher = StatusPublisher(settings.kafka, settings.topics)
    publisher.publish(status_parts(settings.lake.group, 1, 1, json.dumps({"status": status})))
    assert publisher.flush(60) == 0
