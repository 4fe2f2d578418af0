"""A group that cannot work does not say that it is up; such a roll-out is taken back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kit.group.live_group import LiveGroup, made_group
from kit.lake.lake import new_topic_name, produce
from kit.processes import processes_naming
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.pipeline.connect_server import ConnectServer

pytestmark = [pytest.mark.usefixtures("kit_on_the_path"), pytest.mark.broker, pytest.mark.spark]
WHERE = "kit.consumer.transformations"
MISSING = "no_such_module:decode"
TRIES = 5


class Place:
    """A topic with records, and the program with a group's settings for it."""

    def __init__(self, kafka: EmbeddedKafka, spark: ConnectServer, folder: Path) -> None:
        self.kafka, self.spark, self.folder = kafka, spark, folder
        self.topic = new_topic_name("carry")
        self.prefix = new_topic_name("group")
        Administration(kafka.settings).create_topic(self.topic, partitions=2)
        produce(kafka.settings, self.topic, {0: [b"a"], 1: [b"b"]})

    def run(
        self, *arguments: str, transformation: str = "", root: str = "", master: str = ""
    ) -> Any:
        options = {
            "spark.master": master or self.spark.master,
            "controller.directory": str(self.folder / "group"),
            "lake.root": root or str(self.folder / "lake"),
            "topics.prefix": self.prefix,
            "monitor.include": json.dumps([self.topic]),
            "lake.tables": json.dumps({self.topic: {"transformation": transformation}}),
        }
        flags = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
        return penstock(*arguments, "--bootstrap-server", self.kafka.bootstrap_servers, *flags)

    def is_untouched(self) -> bool:
        topics = Administration(self.kafka.settings).cluster().partition_counts
        is_quiet = processes_naming(str(self.folder / "group")) == []
        return is_quiet and not any(name.startswith(self.prefix) for name in topics)


@pytest.fixture
def place(kafka: EmbeddedKafka, spark_server: ConnectServer, tmp_path: Path) -> Place:
    return Place(kafka, spark_server, tmp_path)


@pytest.mark.parametrize("command", ["up", "controller"])
def test_a_missing_module_stops_the_start(place: Place, command: str) -> None:
    """Exit code 3, the name and where Python looks; no topic is made and no process left."""
    done = place.run(command, transformation=MISSING)
    assert done.returncode == 3, done.stderr
    assert f"{MISSING} cannot be imported" in done.stderr
    assert "PYTHONPATH" in done.stderr
    assert "The group is up" not in done.stderr
    assert place.is_untouched()


def test_a_function_that_fails_on_every_record_stops_the_start(place: Place) -> None:
    """It was run on real records, which stay as they are; the lake too."""
    done = place.run("up", transformation=f"{WHERE}:raises")
    assert done.returncode == 1, done.stderr
    assert "raised ValueError: no such thing" in done.stderr
    assert place.is_untouched()
    assert not (place.folder / "lake").exists()


def test_batches_of_real_records_are_timed(place: Place) -> None:
    """With the transformation, into a corner of the lake of which nothing is left."""
    produce(place.kafka.settings, place.topic, {0: [b"x" * 1_000] * 1_500, 1: [b"y" * 1_000] * 500})
    timed: dict[str, Any] = {}
    for _ in range(TRIES):  # on a busy machine there may be no time for a large batch
        asked = ("try", "--calibrate", "-o", "json")
        done = place.run(*asked, transformation=f"{WHERE}:upper_in_python")
        assert done.returncode == 0, done.stderr
        (timed,) = [one for one in json.loads(done.stdout) if one.get("topic") == place.topic]
        if timed["bytes_per_s"] is not None and not timed["is_at_least"]:
            break
    assert timed["bytes_per_s"] is not None, timed
    assert timed["bytes_per_s"] > 10_000, timed
    # Of the 2 MB what fits into the time on this machine.
    assert re.search(rf"of {place.topic}: [01]\.\d MB of its log took", timed["explanation"]), timed
    assert not timed["is_at_least"]
    assert not (place.folder / "lake").exists()


def test_no_spark_is_started_where_everything_is_known(place: Place) -> None:
    """A restart stays quick: nobody could reach this Spark."""
    produce(place.kafka.settings, place.topic, {0: [b"x" * 1_000] * 1_500})
    asked = ("try", "--calibrate", "-o", "json")
    away = "sc://127.0.0.1:9"
    known = place.run(*asked, "--known", place.topic, master=away)
    assert [one["check"] for one in json.loads(known.stdout)] == ["lake"]


def test_a_lake_that_cannot_be_written_stops_the_start(place: Place) -> None:
    """A file is where the lake should be: said at once, with what to check."""
    (place.folder / "file").write_text("no folder")
    done = place.run("up", root=str(place.folder / "file"))
    assert done.returncode == 3, done.stderr
    assert "cannot be written" in done.stderr
    assert "lake.root" in done.stderr
    assert place.is_untouched()


def test_the_doctor_tries_lake_and_transformations(place: Place) -> None:
    """A line each; what fails has its remedy, and the other lines are there too."""
    penstock("topics", "create", "--bootstrap-server", place.kafka.bootstrap_servers)
    good = place.run("doctor", "-o", "json", transformation=f"{WHERE}:decode_all")
    lines = {one["check"]: one for one in json.loads(good.stdout)}
    assert lines["lake"]["ok"]
    tried = lines[f"transformation of {place.topic}"]
    assert tried["ok"]
    assert "was tried on 2 records: 2 records carried" in tried["explanation"]
    assert not tried["is_doubtful"]
    none = place.run("doctor", transformation=f"{WHERE}:mark_all")
    assert "?? " in none.stdout, "every record would be a dead letter"
    bad = place.run("doctor", "-o", "json", transformation=MISSING)
    lines = {one["check"]: one for one in json.loads(bad.stdout)}
    assert bad.returncode != 0
    assert not lines[f"transformation of {place.topic}"]["ok"]
    assert "PYTHONPATH" in lines[f"transformation of {place.topic}"]["remedy"]
    assert list((place.folder / "lake").glob("*")) == []


def test_a_partition_that_would_stop_is_doubtful(place: Place) -> None:
    """The others are carried, so it holds nothing up; `up` warns of it."""
    produce(place.kafka.settings, place.topic, {0: [b"poison"]})
    done = place.run("try", "-o", "json", transformation=f"{WHERE}:fails_on_poison")
    assert done.returncode == 0, done.stderr
    lines = {one["check"]: one for one in json.loads(done.stdout)}
    tried = lines[f"transformation of {place.topic}"]
    assert tried["ok"]
    assert tried["is_doubtful"]
    assert tried["stops_some"]
    assert f"1 partition would stop, as {place.topic}-0" in tried["explanation"]


def test_the_doctor_tells_a_failure_without_stacks(place: Place) -> None:
    """A Spark of the command's own printed a hundred lines of Java about one bad record."""
    penstock("topics", "create", "--bootstrap-server", place.kafka.bootstrap_servers)
    produce(place.kafka.settings, place.topic, {0: [b"poison"]})
    done = place.run("doctor", transformation=f"{WHERE}:fails_on_poison", master="local[1]")
    assert f"transformation of {place.topic}" in done.stdout
    assert "poison" in done.stdout
    for told in ("at org.apache.spark", "Traceback", "incubator", "log4j"):
        assert told not in done.stderr


@pytest.mark.timeout(400)  # two consumers are replaced, on a machine that may be busy
def test_a_roll_out_that_cannot_work_changes_nothing(
    broker_jars: None, spark_jars: None, tmp_path: Path
) -> None:
    """A missing module is refused before; what fails only in a consumer is rolled back."""
    topic = "orders"
    tables = json.dumps({topic: {"transformation": f"{WHERE}:decode_all"}})
    settings = {
        "lake__tables": tables,
        "monitor__include": '["orders"]',
        "controller__silence": "20s",  # nobody dies here: one that is slow is not replaced
        "controller__allowed_transformations": f'["{WHERE}:.*", "{MISSING}"]',
    }
    with made_group(tmp_path, **settings) as group:
        live = LiveGroup(group)
        at = ("--bootstrap-server", group.settings.kafka.bootstrap_servers)

        def update(transformation: str) -> Any:
            content = json.dumps({"transformations": {topic: transformation}})
            return penstock(
                "service",
                "send",
                "update-deployments",
                content,
                "--wait",
                "12m",
                *at,
                timeout_s=800,
            )

        live.administration.create_topic(topic, partitions=2)
        live.converged({topic: 2})
        live.load("orders=20kB/s", seconds=3)
        foreign = update("os.path:join")
        assert foreign.returncode == 1
        assert "refused: the transformation os.path:join of orders is not allowed" in foreign.stderr
        refused = update(MISSING)
        assert refused.returncode == 1
        assert f"refused: The transformation {MISSING} cannot be imported" in refused.stderr
        live.until(lambda status: status["roll_out"] is None, "nothing is rolled out")
        with live.loading_meanwhile("orders=20kB/s"):
            failed = update(f"{WHERE}:fails_in_a_consumer")
        assert failed.returncode == 1, failed.stderr
        assert "failed: rolled back: orders-" in failed.stderr
        assert "fails_in_a_consumer raised ValueError" in failed.stderr
        live.until(
            lambda status: "rolled_back" in [one["code"] for one in status["history"]],
            "the history says so",
        )
        live.converged({topic: 2})
        assert live.drained(topic).is_exact
