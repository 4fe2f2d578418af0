"""A consumer tells a deployment that starts few at a time when its start is complete."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.consumer.core.inputs import SparkStarted
from penstock.consumer.process import ConsumerProcess, loop
from penstock.settings import Settings, changed_settings


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A consumer that is up, and whose core decides nothing."""
    settings = changed_settings(Settings(), {"consumer.state_root": str(tmp_path)})
    process: Any = ConsumerProcess(settings, 1, started_file=tmp_path / "started")
    process._state = SimpleNamespace(ownership=SimpleNamespace(owned={}))
    process._runner = SimpleNamespace(run=lambda _: None)
    monkeypatch.setattr(loop, "step", lambda state, _: (state, ()))
    return process


def test_the_file_keeps_the_time_of_the_first_start_of_spark(process: Any, tmp_path: Path) -> None:
    """By its time the deployment knows how long a start takes; a Spark session is opened again."""
    started = tmp_path / "started"
    process._feed(SparkStarted(1))
    assert started.is_file()
    os.utime(started, (1_000, 1_000))
    process._feed(SparkStarted(2))
    assert started.stat().st_mtime == 1_000


def test_a_start_that_cannot_be_told_ends_nothing(process: Any, tmp_path: Path) -> None:
    """The folder is gone, or a file: the deployment waits its time out."""
    process._started_file = tmp_path / "gone" / "started"
    process._feed(SparkStarted(1))
    assert not process._started_file.exists()
