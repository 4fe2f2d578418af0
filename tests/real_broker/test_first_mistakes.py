"""Mistakes in the names of topics and modules: told at once, before anything slow is started."""

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from kit.lake.lake import new_topic_name
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka

pytestmark = [pytest.mark.broker, pytest.mark.timeout(180)]
TYPED = "paymnts.*"


@pytest.fixture(scope="module")
def payments(kafka: EmbeddedKafka) -> str:
    name = new_topic_name("payments")
    Administration(kafka.settings).create_topic(name, partitions=1)
    return name


def run(
    kafka: EmbeddedKafka, folder: Path, *command: str, **settings: object
) -> "CompletedProcess[str]":
    """`settings` by their names, with two underscores for the dot."""
    given = {"lake__root": str(folder / "lake"), "controller__directory": str(folder), **settings}
    texts = {
        name.replace("__", "."): one if isinstance(one, str) else json.dumps(one)
        for name, one in given.items()
    }
    flags = [word for name, text in texts.items() for word in ("--set", f"{name}={text}")]
    return penstock(*command, *flags, "--bootstrap-server", kafka.bootstrap_servers, cwd=folder)


@pytest.mark.parametrize("command", [("speeds", "--once"), ("recommend", "--for", "60s")])
def test_a_pattern_that_matches_nothing_is_told_with_the_nearest_names(
    kafka: EmbeddedKafka, payments: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """As a settings error at once; not an empty table, and not after a minute of watching."""
    done = run(kafka, tmp_path, *command, monitor__include=[TYPED])
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"No topic matches monitor.include '{TYPED}'; there are" in done.stderr
    assert payments in done.stderr
    assert "Watching" not in done.stderr


def test_a_pattern_of_the_command_line_is_told_as_that(
    kafka: EmbeddedKafka, payments: str, tmp_path: Path
) -> None:
    """Whoever gave `--topic` looks there."""
    done = run(kafka, tmp_path, "speeds", "--once", "--topic", TYPED)
    assert done.returncode == 3
    assert f"No topic matches --topic '{TYPED}'" in done.stderr


def test_the_doctor_has_a_line_for_the_topics_that_are_included(
    kafka: EmbeddedKafka, payments: str, tmp_path: Path
) -> None:
    """It is wrong with a pattern that matches nothing, and right with one that does."""
    for pattern, is_right in ((TYPED, False), (payments, True)):
        done = run(kafka, tmp_path, "doctor", "-o", "json", monitor__include=[pattern])
        lines = {one["check"]: one for one in json.loads(done.stdout)}
        assert lines["included"]["ok"] is is_right
        assert (payments in lines["included"]["explanation"]) or not is_right


def test_up_tells_a_missing_module_and_topic_before_it_starts_spark(
    kafka: EmbeddedKafka, spark_jars: None, payments: str, tmp_path: Path
) -> None:
    """The topics may come later, so that is a warning; the module stops the start."""
    tables = {payments: {"transformation": "no_such_module:decode"}}
    done = run(kafka, tmp_path, "up", lake__tables=tables, monitor__include=[TYPED])
    assert done.returncode == 3, done.stderr
    assert "no_such_module:decode cannot be imported" in done.stderr
    assert f"warning: No topic matches monitor.include '{TYPED}'" in done.stderr
    assert "starting a Spark Connect server" not in done.stderr
    assert not (tmp_path / "spark").exists()


def test_a_topic_or_module_that_is_not_there_is_not_tried_with_spark(
    kafka: EmbeddedKafka, spark_jars: None, payments: str, tmp_path: Path
) -> None:
    """`try` names the nearest topics, or the module; Spark is not started for either."""
    done = run(kafka, tmp_path, "try", payments.replace("y", "", 1))
    assert done.returncode == 1, done.stderr
    assert "Kafka has no topic" in done.stderr
    assert payments in done.stderr
    assert "starting Spark" not in done.stderr
    tables = {payments: {"transformation": "no_such_module:decode"}}
    done = run(kafka, tmp_path, "try", payments, lake__tables=tables)
    assert done.returncode == 3, done.stderr
    assert "no_such_module:decode cannot be imported" in done.stderr
    assert "starting Spark" not in done.stderr


def test_a_lake_that_cannot_be_written_is_the_only_thing_blamed(
    kafka: EmbeddedKafka, spark_jars: None, payments: str, tmp_path: Path
) -> None:
    """The doctor imports the transformations, and does not start Spark to fail with each."""
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    tables = {name: {"transformation": "json:dumps"} for name in (payments, "orders")}
    root = str(tmp_path / "file")
    done = run(kafka, tmp_path, "doctor", "-o", "json", lake__tables=tables, lake__root=root)
    lines = {one["check"]: one for one in json.loads(done.stdout)}
    assert not lines["lake"]["ok"]
    for name in tables:
        assert lines[f"transformation of {name}"]["ok"]
        assert "not tried without the lake" in lines[f"transformation of {name}"]["explanation"]
    assert "starting Spark" not in done.stderr
