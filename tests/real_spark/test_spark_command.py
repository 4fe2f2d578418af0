"""`penstock spark`: a server that outlives its command and is found again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kit.own_cache import make_own_cache
from kit.processes import children_of, processes_naming
from kit.program import invoked
from penstock.pipeline.connect_server import is_listening

pytestmark = pytest.mark.spark


def test_start_status_stop(
    spark_jars: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start prints an address, status finds it ready, stop ends it, and twice is no error."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(make_own_cache(tmp_path / "cache")))
    started = invoked("spark", "start", "--name", "tried", "-o", "json")
    assert started.exit_code == 0, started.stderr
    try:
        (found,) = json.loads(invoked("spark", "status", "-o", "json").stdout)
        assert found == json.loads(started.stdout)
        assert found["state"] == "ready"
        port = found["address"].rpartition(":")[2]
        (server,) = processes_naming(f"spark.connect.grpc.binding.port={port}")
        assert children_of(server, "pyspark.daemon"), "it was not warmed up"
        assert found["address"].startswith("sc://127.0.0.1:")
        again = invoked("spark", "start", "--name", "tried")
        assert "is already running" in str(again.exception)
    finally:
        invoked("spark", "stop", "--name", "tried")
    assert json.loads(invoked("spark", "status", "-o", "json").stdout) == []
    assert invoked("spark", "stop", "--name", "tried").exit_code == 0


def test_a_server_in_the_foreground_ends_with_sigterm(
    spark_jars: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the first process of a pod it listens where it is asked to, and ends with exit code 0."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = ("spark", "start", "--foreground", "--listen-on", "127.0.0.2", "--name", "pod")
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", *command],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("sc://127.0.0.2:")
        assert is_listening("127.0.0.2", int(address.rpartition(":")[2]))
        (log,) = tmp_path.glob("penstock-spark-*/spark.log")  # one server, not two
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=240) == 0
    assert not is_listening("127.0.0.2", int(address.rpartition(":")[2]))
    assert not log.exists()
