"""`penstock spark`: a server that outlives its command and is found again."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.jars import cache_directory

pytestmark = pytest.mark.spark


def test_start_status_stop(
    spark_jars: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start prints an address, status finds it ready, stop ends it, and twice is no error."""
    (tmp_path / "jars").symlink_to(cache_directory() / "jars")
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    runner = CliRunner()
    started = runner.invoke(app, ["spark", "start", "--name", "tried", "-o", "json"])
    assert started.exit_code == 0, started.stderr
    try:
        (found,) = json.loads(runner.invoke(app, ["spark", "status", "-o", "json"]).stdout)
        assert found == json.loads(started.stdout)
        assert found["state"] == "ready"
        assert found["address"].startswith("sc://127.0.0.1:")
        again = runner.invoke(app, ["spark", "start", "--name", "tried"])
        assert "runs already" in str(again.exception)
    finally:
        runner.invoke(app, ["spark", "stop", "--name", "tried"])
    assert json.loads(runner.invoke(app, ["spark", "status", "-o", "json"]).stdout) == []
    assert runner.invoke(app, ["spark", "stop", "--name", "tried"]).exit_code == 0
