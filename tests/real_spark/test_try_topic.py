"""`penstock try TOPIC`: what real records would become, with nothing written anywhere."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kit.lake.lake import Carrier, new_topic_name, produce
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer

pytestmark = [pytest.mark.usefixtures("kit_on_the_path"), pytest.mark.broker, pytest.mark.spark]
WHERE = "kit.consumer.transformations"


class Trials:
    """A broker, a Spark server and a lake of this test's own, and `penstock try` on them."""

    def __init__(self, kafka: EmbeddedKafka, spark: ConnectServer, folder: Path) -> None:
        self.kafka = kafka
        self.spark = spark
        self.lake = folder / "lake"

    def topic(self, story: str, *values: bytes | None, partitions: int = 1) -> str:
        name = new_topic_name(story)
        Administration(self.kafka.settings).create_topic(name, partitions=partitions)
        produce(self.kafka.settings, name, {0: values})
        return name

    def topics(self) -> dict[str, int]:
        """All but Kafka's own, with where each log ends in all."""
        administration = Administration(self.kafka.settings)
        counts = administration.cluster().partition_counts
        places = [
            TopicPartition(name, number)
            for name, count in counts.items()
            for number in range(count)
            if not name.startswith("__")
        ]
        return {str(place): end for place, end in administration.end_offsets(places).items()}

    def run(self, *arguments: str, **tables: Any) -> Any:
        given = {name: f"lake.tables={json.dumps(tables)}" for name in ("tables",) if tables}
        return penstock(
            "try",
            *arguments,
            "--bootstrap-server",
            self.kafka.bootstrap_servers,
            "--set",
            f"spark.master={self.spark.master}",
            "--set",
            f"lake.root={self.lake}",
            *(word for text in given.values() for word in ("--set", text)),
        )

    def seen(self, topic: str, *arguments: str, **table: Any) -> dict[str, Any]:
        done = self.run(topic, "-o", "json", *arguments, **{topic: table})
        assert done.stdout, done.stderr
        return {"exit_code": done.returncode, **json.loads(done.stdout)}


@pytest.fixture
def trials(kafka: EmbeddedKafka, spark_server: ConnectServer, tmp_path: Path) -> Trials:
    return Trials(kafka, spark_server, tmp_path)


def test_rows_types_and_dead_letters_of_the_newest_records(trials: Trials) -> None:
    """The newest three of four records; no table, no offset and no topic is made for it."""
    topic = trials.topic("try", b'{"id":"old"}', b'{"id":"a"}', b"broken", b'{"id":"b"}')
    before = trials.topics()
    seen = trials.seen(topic, "-n", "3", transformation=f"{WHERE}:decode", columns=["id", "offset"])
    assert seen["exit_code"] == 0
    assert seen["records"] == 3
    assert seen["rows"] == [{"id": "a", "offset": 1}, {"id": "b", "offset": 3}]
    assert seen["schema"] == {"id": "string", "offset": "bigint"}
    (letter,) = seen["dead_letters"]
    assert (letter["offset"], letter["value"]) == (2, "broken")
    assert letter["reason"] == "not JSON with an id"
    assert seen["table"]["exists"] is False
    assert seen["table"]["columns_added"] == ["id", "offset"]
    assert not trials.lake.exists()
    assert trials.topics() == before


def test_the_table_for_people_and_the_oldest_records(trials: Trials) -> None:
    """Columns with their types, values as text, and a sentence about the table."""
    topic = trials.topic("try", b'{"id":"first"}', b'{"id":"last"}')
    done = trials.run(
        topic, "--oldest", "-n", "1", **{topic: {"transformation": f"{WHERE}:decode"}}
    )
    assert done.returncode == 0, done.stderr
    assert "first" in done.stdout
    assert "last" not in done.stdout
    said = done.stderr.splitlines()
    steps = ["starting Spark", f"looking for records of {topic}"]
    assert [line for line in said if line in steps] == steps
    assert "carrying 1 record into a temporary folder" in said
    assert "timestamp" in done.stdout
    assert f"The table {topic} would be made, with" in done.stderr


def test_a_function_that_marks_everything_is_refused(trials: Trials) -> None:
    """All would be dead letters: shown, and the exit code is 1."""
    topic = trials.topic("try", b"a", b"b")
    seen = trials.seen(topic, transformation=f"{WHERE}:mark_all")
    assert (seen["exit_code"], seen["rows"], len(seen["dead_letters"])) == (1, [], 2)


def test_milliseconds_that_are_taken_for_seconds_are_named(trials: Trials) -> None:
    """A newcomer got a traceback here, and after a roll-out a table that Python cannot read."""
    topic = trials.topic("try", b'{"id":"a"}', b'{"id":"b"}')
    table = {"transformation": f"{WHERE}:with_far_times"}
    seen = trials.seen(topic, **table)
    assert (seen["exit_code"], seen["rows"][0]["at"]) == (1, "in the year 58692")
    shown = trials.run(topic, **{topic: table})
    assert "Every time in at is in the year 58692 or so" in shown.stderr
    whole = trials.run("-o", "json", **{topic: table})
    (found,) = [one for one in json.loads(whole.stdout) if one["check"] != "lake"]
    assert (found["ok"], "milliseconds" in found["remedy"]) == (False, True)


def test_the_record_that_makes_it_raise_is_named(trials: Trials) -> None:
    """The partition would stop there: its offset and Spark's words."""
    topic = trials.topic("try", b"fine", b"fine", b"poison", b"fine")
    seen = trials.seen(topic, transformation=f"{WHERE}:fails_on_poison")
    assert seen["exit_code"] == 1
    (failure,) = seen["failures"]
    assert f"fails on {TopicPartition(topic, 0)} at offset 2" in failure["explanation"]
    assert "poisoned" in failure["explanation"]


def test_a_module_that_is_not_there_is_a_settings_error(trials: Trials) -> None:
    """Exit code 3, the name, and where Python looks for it."""
    topic = trials.topic("try", b"a")
    done = trials.run(topic, **{topic: {"transformation": "no_such_module:decode"}})
    assert done.returncode == 3
    assert "no_such_module:decode cannot be imported" in done.stderr
    assert "PYTHONPATH" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_topic_that_is_not_there_is_said_so(trials: Trials) -> None:
    """A name that Kafka does not have is an error without a traceback."""
    done = trials.run("never-made")
    assert done.returncode == 1
    assert "never-made" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_topic_without_records_shows_its_columns(trials: Trials) -> None:
    """The function runs on no records: the table that it would make is known."""
    topic = trials.topic("try")
    seen = trials.seen(topic, transformation=f"{WHERE}:decode", columns=["id"])
    assert (seen["exit_code"], seen["records"], seen["schema"]) == (0, 0, {"id": "string"})


def test_an_existing_table_gets_columns_or_refuses(
    trials: Trials, make_carrier: Callable[..., Carrier]
) -> None:
    """A new column is named; another type for a known one is refused with exit code 1."""
    topic = trials.topic("try", b'{"id":"a"}')
    table = {"transformation": f"{WHERE}:decode", "columns": ["id"]}
    carrier = make_carrier(tables={topic: table})
    carrier.carry_all(topic)
    version = carrier.pipeline.table(topic).snapshot([]).known_files
    more = trials.seen(topic, **{**table, "columns": ["id", "offset"]})
    assert more["exit_code"] == 0
    assert more["table"] == {
        "name": topic,
        "exists": True,
        "columns_added": ["offset"],
        "refusal": None,
    }
    other = trials.seen(topic, transformation=f"{WHERE}:id_as_number", columns=["id"])
    assert other["exit_code"] == 1
    assert "has id as" in other["table"]["refusal"]
    assert carrier.pipeline.table(topic).snapshot([]).known_files == version


def test_a_spark_in_its_own_process(trials: Trials) -> None:
    """No Spark server is named, as before a first start: the command brings its own."""
    topic = trials.topic("try", b'{"id":"a"}', b"broken")
    done = penstock(
        *("try", topic, "-o", "json", "--bootstrap-server", trials.kafka.bootstrap_servers),
        *("--set", f"lake.root={trials.lake}"),
        *("--set", f'lake.tables={{"{topic}": {{"transformation": "{WHERE}:decode"}}}}'),
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert [row["id"] for row in seen["rows"]] == ["a"]
    assert [letter["value"] for letter in seen["dead_letters"]] == ["broken"]
    assert "log level" not in done.stderr, "what Spark says when it starts is for nobody"
    assert not trials.lake.exists()


def test_records_without_a_transformation(trials: Trials) -> None:
    """The raw columns of Kafka, from the records between aborted ones."""
    topic = trials.topic("try", b"a")
    produce(trials.kafka.settings, topic, {0: [b"x"] * 5}, transaction=False)
    produce(trials.kafka.settings, topic, {0: [b"b"]}, transaction=True)
    for arguments, table in (((), {}), (("--raw",), {"transformation": f"{WHERE}:decode"})):
        seen = trials.seen(topic, "-n", "2", *arguments, **table)
        assert [row["value"] for row in seen["rows"]] == ["a", "b"]
        assert seen["schema"]["headers"].startswith("array<struct<")
        assert (seen["table"] is None) is (arguments == ("--raw",))


def test_raw_records_need_no_spark(trials: Trials) -> None:
    """A look at one record took half a minute, and told of a table that nobody would make."""
    topic = trials.topic("try")
    producer = RecordProducer(trials.kafka.settings)
    producer.send(topic, 0, b"\xff", key=b"k", headers=(("h", b"1"),))
    assert producer.flush(90) == 0
    nowhere = cast("ConnectServer", SimpleNamespace(master="sc://127.0.0.1:1"))
    done = Trials(trials.kafka, nowhere, trials.lake).run(topic, "--raw")
    assert done.returncode == 0, done.stderr
    for told in ("0xff", "k", "{'key': 'h', 'value': '1'}"):
        assert told in done.stdout
    assert "would be made" not in done.stderr
    assert "dead letter" not in done.stderr
