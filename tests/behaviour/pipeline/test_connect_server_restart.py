"""A Spark server that could not be started again is tried again by its group."""

from pathlib import Path

import pytest

from penstock.local_group import LocalGroup, group
from penstock.pipeline import connect_server
from penstock.pipeline.connect_server import ConnectServer
from penstock.processes import ProcessIdentity
from penstock.processes.child import ENDED_AT_ONCE
from penstock.settings import load_settings
from penstock.settings.sections import SparkSettings


def test_a_restart_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a start that died the group still knows that its server is dead."""
    monkeypatch.setattr(connect_server, "server_command", lambda *_: ["false"])
    monkeypatch.setattr(group, "SERVER_RESTART_PAUSE_S", 0.0)
    flags = {"controller.directory": str(tmp_path)}
    local = LocalGroup(
        load_settings(flags=flags, environment={}).settings, start_broker=None, embedded_spark=False
    )
    local.spark_server = ConnectServer(SparkSettings(), folder=tmp_path / "spark")
    local.spark_server.process = ProcessIdentity(1, ENDED_AT_ONCE)
    for _ in range(3):
        (line,) = local.repair()
        assert "Spark server died and could not be restarted" in line
