"""Where a process serves its health and its metrics, by its options and settings."""

import json
import urllib.request
from pathlib import Path

import pytest

from kit.canaries import CANARIES, found_in
from kit.controller.scraped import ScrapedStory
from kit.controller.story import TWO_CONSUMERS
from kit.free_ports import free_ports
from penstock.cli.options import health_answers
from penstock.consumer.process.batch_results import batch_ended
from penstock.consumer.process.metrics import ConsumerMetrics
from penstock.metrics import Process
from penstock.model import TopicPartition
from penstock.pipeline import (
    BatchResult,
    LakeRefusedError,
    SchemaChangedError,
    StaleWriterError,
    Timings,
    TransformationFailedError,
)
from penstock.pipeline.upkeep import UpkeepReport
from penstock.settings import Settings, changed_settings
from penstock.settings.load import load_settings
from penstock.telemetry.exposition import rendered


def scraped(port: int) -> str:
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        text: str = answer.read().decode()
    return text


def test_without_a_port_nothing_is_served() -> None:
    """The default of a local process: it counts, and nobody can ask."""
    with health_answers(None, Settings(), Process.MONITOR) as (_, metrics):
        assert not metrics.is_served


def test_a_port_serves_metrics_beside_health() -> None:
    """With the release, and whether the process is ready."""
    (port,) = free_ports(1)
    with health_answers(port, Settings(), Process.MONITOR) as (health, metrics):
        assert metrics.is_served
        assert 'penstock_ready{group="penstock",process="monitor"} 0.0' in scraped(port)
        assert 'process="monitor",version="' in scraped(port).replace(" ", "")
        health.begun()
        assert health.is_ready


def test_a_local_process_takes_a_free_port_and_notes_it(tmp_path: Path) -> None:
    """Under its own name, and no longer when it has ended."""
    settings = changed_settings(Settings(), {"telemetry.metrics_targets": str(tmp_path / "t")})
    file = tmp_path / "t" / "consumer-3.json"
    with health_answers(None, settings, Process.CONSUMER, name="consumer-3"):
        (target,) = json.loads(file.read_text())
        host, _, port = target["targets"][0].partition(":")
        assert host == "127.0.0.1"
        assert "penstock_build_info" in scraped(int(port))
    assert not file.exists()


def _failing_batch(words: str) -> BatchResult:
    """Whose every kind of failure quotes the words."""
    kinds = (LakeRefusedError, StaleWriterError, SchemaChangedError, TransformationFailedError)
    failures = {TopicPartition("orders", number): kind(words) for number, kind in enumerate(kinds)}
    return BatchResult(
        carried={TopicPartition("orders", 9): 5},
        failures=failures,
        dead_letters=2,
        timings=Timings(read_s=0.1, transform_s=0.1, write_s=0.1, commit_s=0.1),
    )


def test_no_secret_is_told_by_a_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are no metrics; neither is what the errors of a failing batch quote."""
    for name, canary in CANARIES.items():
        monkeypatch.setenv(name, canary)
    settings = load_settings().settings
    words = f"the lake says: {' '.join(CANARIES.values())}"
    result = _failing_batch(words)
    (port,) = free_ports(1)
    with health_answers(port, settings, Process.CONSUMER) as (health, metrics):
        of_batches = ConsumerMetrics(settings.lake, 3, metrics)
        of_batches.spark_is_asked_for()
        of_batches.spark_started()
        of_batches.batch_ended(result, batch_ended(result, 0), 0.5)
        of_batches.committed("orders", 17, 7)
        of_batches.conflicted("orders")
        of_batches.tables_kept([UpkeepReport("orders", 5, 5, 0, 0, 0, left_alone=words)], 0.5)
        of_batches.tables_not_kept()
        health.lacks("spark", words)
        told = scraped(port)
    series = {line.partition("{")[0] for line in told.splitlines() if not line.startswith("#")}
    assert len(series) > 30, "the store is full"
    assert "schema_changed" in told
    assert found_in(told, CANARIES.values()) == []


def test_no_secret_is_told_by_a_controller() -> None:
    """What consumers report in words stays in the history, which has no metrics but counts."""
    (secret, *_) = CANARIES.values()
    told = ScrapedStory(
        *TWO_CONSUMERS,
        "consumer 1 stopped orders-1@1.2, transformation_failed",
        f"request p: pause direction=down reason={secret}",
        "tick +500",
    )
    text = rendered(told.store).decode()
    assert 'reason="transformation_failed"} 1.0' in text
    assert found_in(text, [secret]) == []
