"""`penstock spark`: a server that outlives its command and is found again."""

import json
from pathlib import Path

import pytest

from kit.program import invoked
from penstock.jars import cache_directory

pytestmark = pytest.mark.spark


def test_start_status_stop(
    spark_jars: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start prints an address, status finds it ready, stop ends it, and twice is no error."""
    (tmp_path / "jars").symlink_to(cache_directory() / "jars")
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    started = invoked("spark", "start", "--name", "tried", "-o", "json")
    assert started.exit_code == 0, started.stderr
    try:
        (found,) = json.loads(invoked("spark", "status", "-o", "json").stdout)
        assert found == json.loads(started.stdout)
        assert found["state"] == "ready"
        assert found["address"].startswith("sc://127.0.0.1:")
        again = invoked("spark", "start", "--name", "tried")
        assert "runs already" in str(again.exception)
    finally:
        invoked("spark", "stop", "--name", "tried")
    assert json.loads(invoked("spark", "status", "-o", "json").stdout) == []
    assert invoked("spark", "stop", "--name", "tried").exit_code == 0
