"""A second `penstock up`, as a user starts it by mistake: refused at once, nothing is touched."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]
BUSY_S = 180.0
AT_ONCE_S = 90.0  # a process on a busy machine takes seconds to start


def arguments(kafka: EmbeddedKafka) -> list[str]:
    """Consumers wait for a Spark server that is not there: enough to see who stops them."""
    given = ["up", "--bootstrap-server", kafka.bootstrap_servers]
    for option in (
        "topics.prefix=second-up",
        "spark.master=sc://127.0.0.1:1",
        "controller.consumers_min=1",
        "monitor.include=[second-up-data]",
    ):
        given += ["--set", option]
    return given


@contextmanager
def running(folder: Path, *given: str) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir(exist_ok=True)
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *given], cwd=folder, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(BUSY_S)


def consumer_of(folder: Path) -> int:
    """The process of the first consumer, once it is there."""
    deadline_s = time.monotonic() + BUSY_S
    while time.monotonic() < deadline_s:
        for note in folder.glob("*/consumer-*/deployment.json"):
            if process := json.loads(note.read_text())["process"]:
                return int(process["pid"])
        time.sleep(0.1)  # the note of another process announces nothing
    raise AssertionError((folder / "up.log").read_text())


def test_a_second_up_is_refused_and_touches_nothing(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """In the same folder and in another one: who holds it is named, and goes on."""
    given = arguments(kafka)
    Administration(kafka.settings).create_topic("second-up-data", partitions=1)
    folder, other = tmp_path / "first", tmp_path / "other"
    other.mkdir()
    with running(folder, *given) as first:
        consumer = consumer_of(folder)
        for place in (folder, other):
            began_s = time.monotonic()
            second = penstock(*given, cwd=place)
            assert time.monotonic() - began_s < AT_ONCE_S
            assert second.returncode == 8, second.stderr
            assert "since 20" in second.stderr
            assert "-m penstock" not in second.stderr
            assert "--ends-with" not in second.stderr
            assert "stopping" not in second.stderr + second.stdout
            assert str(folder) in second.stderr
            if place == folder:
                assert f"process {first.pid} on {socket.gethostname()}" in second.stderr
        assert first.poll() is None
        os.kill(consumer, 0)  # still there
        assert "died" not in (folder / "up.log").read_text()
    assert first.returncode == 0
    with running(other, *given) as next_one:
        consumer_of(other)
        assert next_one.poll() is None
