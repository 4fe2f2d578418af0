"""Where a process serves its health and its metrics, by its options and settings."""

import json
import urllib.request
from pathlib import Path

import pytest

from kit.free_ports import free_ports
from penstock.cli.options import health_answers
from penstock.metrics import Process
from penstock.settings import Settings, changed_settings
from penstock.settings.load import load_settings


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


def test_no_secret_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are no metrics, and passwords least of all."""
    monkeypatch.setenv("PENSTOCK_KAFKA__SASL_PASSWORD", "canary-4711")
    settings = load_settings().settings
    (port,) = free_ports(1)
    with health_answers(port, settings, Process.CONTROLLER):
        assert "canary" not in scraped(port)
