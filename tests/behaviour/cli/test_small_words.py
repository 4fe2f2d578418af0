"""What tables and checks say in few words."""

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.progress import Progress

from penstock.cli import doctor, jars
from penstock.cli.console import OutputFormat
from penstock.cli.settings import value_text
from penstock.errors import PenstockError
from penstock.extras import Extra
from penstock.jars import JarSet
from penstock.jars.fetch import FetchProgress
from penstock.settings import Settings, changed_settings
from penstock.topics.control_topics import TopicFinding, TopicState


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ({}, ""),
        (["orders.*", "clicks"], "orders.*, clicks"),
        ({"sasl.username": "ann", "client.id": "p"}, "sasl.username=ann, client.id=p"),
        ({"orders": {"columns": ["id"]}, "clicks": {}}, "orders, clicks (whole: -o yaml)"),
        (0, "0"),
        (False, "False"),
    ],
)
def test_a_value_in_a_cell_is_no_python(value: Any, text: str) -> None:
    """A table with its columns does not fit into a cell, so it is named."""
    assert value_text(value) == text


def test_what_is_wrong_with_many_topics_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Kafka without control topics: one sentence with all names."""
    missing = [
        TopicFinding(name, TopicState.MISSING, "does not exist: run `penstock topics create`")
        for name in ("a", "b", "c")
    ]
    fine = replace(missing[0], topic="d", verdict=TopicState.OK)
    monkeypatch.setattr(doctor, "findings_for", lambda *_: [*missing, fine])
    monkeypatch.setattr(doctor, "Administration", lambda _: None)
    with pytest.raises(PenstockError) as told:
        doctor._topics(Settings())
    assert told.value.message == "a, b, c: does not exist: run `penstock topics create`."


def test_jars_that_are_there_are_not_called_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The bar comes with the first jar that arrives."""
    seen: list[list[bool]] = []
    bars: list[Progress] = []

    class Watched(Progress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            super().__init__(*columns, **options)
            bars.append(self)

    def fetched(jar_set: JarSet, on_progress: Any) -> Path:
        seen.append([task.visible for task in bars[-1].tasks])
        on_progress(FetchProgress(jar_set, 1, 2, 1))
        seen.append([task.visible for task in bars[-1].tasks])
        return tmp_path

    monkeypatch.setattr(jars, "Progress", Watched)
    monkeypatch.setattr(jars, "fetch", fetched)
    jars.fetch_with_progress([JarSet.BROKER])
    assert seen == [[False], [True]]


def test_doctor_says_that_a_check_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check that takes long is said again, with its time, before its answer."""

    def slow_java() -> str:
        time.sleep(0.3)  # three times as long as until it is said again
        return "Java 21"

    monkeypatch.setattr(doctor, "SAID_AGAIN_AFTER_S", 0.1)
    monkeypatch.setattr(doctor, "has_extra", lambda extra: extra is Extra.SPARK)
    monkeypatch.setattr(doctor, "spark_sets", lambda _: ())
    monkeypatch.setattr(doctor, "_jars", lambda _: "fine")
    monkeypatch.setattr(doctor, "_java", slow_java)
    monkeypatch.setattr(doctor, "_trials", lambda *_: iter(()))
    with pytest.raises(typer.Exit):
        doctor.doctor(None, None, "127.0.0.1:9", OutputFormat.JSON)
    said = capsys.readouterr().err
    assert re.search(r"checking Java\nstill checking Java, [\d.]+ s\n", said)


def test_doctor_names_patterns_without_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    """It showed a list as Python writes it."""
    monkeypatch.setattr(doctor, "require_included", lambda _: None)
    settings = changed_settings(Settings(), {"monitor.include": ["orders.*", "clicks"]})
    assert doctor._included(settings) == "topics that match orders.*, clicks are carried"
