"""A real controller on a real broker, seen from another folder that knows only the broker."""

import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.controller.real_controllers import BUSY_S, Controllers, until
from kit.controller.whole_status import whole_status
from kit.program import penstock
from penstock.cli.group_status import StatusSource
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.status_topic import StatusPublisher, StatusReader
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages.status_records import status_parts
from penstock.settings import changed_settings

pytestmark = [pytest.mark.broker, pytest.mark.timeout(240)]
PREFIX = "seen"


@pytest.fixture(scope="module")
def kafka(broker_jars: None) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


class Anywhere:
    """The program in an empty folder, with nothing but the names of the group."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path) -> None:
        self._names = [
            "--bootstrap-server",
            kafka.bootstrap_servers,
            "--set",
            f"topics.prefix={PREFIX}",
        ]
        self._folder = folder
        folder.mkdir()

    def data(self, *arguments: str, exit_codes: tuple[int, ...] = (0,)) -> Any:
        done = penstock(*arguments, *self._names, "-o", "json", cwd=self._folder)
        assert done.returncode in exit_codes, done.stderr
        return json.loads(done.stdout)

    def text(self, *arguments: str) -> str:
        done = penstock(*arguments, *self._names, cwd=self._folder)
        return " ".join((done.stdout + done.stderr).split())


def test_a_group_is_seen_from_another_machine(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Status, history and settings come from Kafka; also those of a controller elsewhere."""
    controllers = Controllers(kafka, tmp_path, PREFIX)
    anywhere = Anywhere(kafka, tmp_path / "anywhere")
    assert "the topic seen-status does not exist" in anywhere.text("status")
    make_control_topics(controllers.settings)
    Administration(controllers.settings.kafka).delete_topic(f"{PREFIX}-status")
    with controllers.controller("first") as first:  # of a group of an older release
        until(lambda: first.status.get("phase") == "Sentinel", "the first controller leads")
        until(lambda: first.events("topic_changed"), "it makes the topic")
        with closing(StatusReader(*_names(controllers))) as reader:
            until(lambda: reader.newest(wait_s=1.0), "a status in Kafka")

        def fresh() -> dict[str, Any] | None:
            found: dict[str, Any] = anywhere.data("status", exit_codes=(0, 1, 9))
            return None if found["is_stale"] else found

        # The controller of a busy machine may be late with one status, and writes the next.
        until(fresh, "a fresh status")
        found = anywhere.data("status", exit_codes=(0, 1, 9))
        assert (found["source"], found["source_problem"]) == ("kafka", None)
        assert found["controller_epoch"] == first.status["controller_epoch"]
        shown = anywhere.data("settings")
        (limit,) = (row for row in shown if row["option"] == "controller.consumers_max")
        assert (limit["value"], "not_in_force" in limit) == (3, True)
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(BUSY_S) == 0
    ended = anywhere.data("status", exit_codes=(1,))
    assert ended["has_ended"]
    assert ended["source"] == "kafka"
    assert "The controller was stopped in order" in anywhere.text("status")
    shutil.rmtree(first.directory)
    with controllers.controller("second") as second:
        until(lambda: second.status, "the second controller leads")
        epoch = second.status["controller_epoch"]
        with closing(StatusReader(*_names(controllers))) as reader:
            until(lambda: _epoch(reader) == epoch, "the second one's status in Kafka")
        before = {one["explanation"] for one in ended["history"]}
        assert before, "the first one decided nothing: the test is void"
        assert {one["explanation"] for one in anywhere.data("history")} >= before
        _a_replaced_one_writes_again(controllers, epoch)
        # On a busy machine the next status of the second one may take longer than a command.
        with closing(StatusReader(*_names(controllers))) as reader:
            until(lambda: _epoch(reader) == epoch, "the next status of the second one")
        assert anywhere.data("status", exit_codes=(0, 9))["controller_epoch"] == epoch


def _names(controllers: Controllers) -> tuple[Any, Any, str]:
    settings = controllers.settings
    return settings.kafka, settings.topics, settings.lake.group


def _epoch(reader: StatusReader) -> int:
    seen = reader.newest(wait_s=1.0)
    return 0 if seen is None else seen.controller_epoch


def _a_replaced_one_writes_again(controllers: Controllers, epoch: int) -> None:
    """As it would in the moment before it knows."""
    kafka, topics, group = _names(controllers)
    publisher = StatusPublisher(kafka, topics)
    text = json.dumps({"status": {"controller_epoch": epoch - 1}})
    for number in range(9000, 9020):
        publisher.publish(status_parts(group, epoch - 1, number, text))
    assert publisher.flush(60) == 0


def test_one_who_asks_again_sees_each_new_status(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """A source that is kept open goes on by itself, and survives a broker that stands still."""
    names = {"topics.prefix": "followed", "kafka.answer_timeout": "3s"}
    base = Controllers(kafka, tmp_path, "followed").settings
    settings = changed_settings(base, names)
    make_control_topics(settings)
    publisher = StatusPublisher(settings.kafka, settings.topics)

    def publish(number: int) -> None:
        status = whole_status(phase=f"phase {number}", controller_epoch=1)
        text = json.dumps({"status": status})
        publisher.publish(status_parts(settings.lake.group, 1, number + 1, text))
        assert publisher.flush(60) == 0

    publish(0)
    with closing(StatusSource(settings)) as source:
        until(lambda: source.read()["phase"] == "phase 0", "the first status")
        publish(1)
        until(lambda: source.read()["phase"] == "phase 1", "the second status")
        for node in kafka.nodes:
            kafka.pause(node)
        try:
            time.sleep(6)
            held = source.read()
            assert (held["phase"], held["is_stale"]) == ("phase 1", True)
        finally:
            for node in kafka.nodes:
                kafka.resume(node)
        began_s = time.monotonic()
        publish(2)
        until(lambda: source.read()["phase"] == "phase 2", "the third status")
        age_s = source.read()["age_s"]
        assert age_s < time.monotonic() - began_s + 1, "this is the age of another one"
