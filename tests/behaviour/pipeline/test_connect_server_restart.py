"""A Spark server that is started again on the port of the one before."""

import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from penstock.local_group import LocalGroup
from penstock.pipeline import connect_server
from penstock.pipeline.connect_server import ConnectServer, ConnectServerStartError
from penstock.processes import ProcessIdentity, is_alive, restart_pace
from penstock.processes.child import ENDED_AT_ONCE
from penstock.settings import load_settings
from penstock.settings.sections import SparkSettings


def test_a_restart_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a start that died the group still knows that its server is dead."""
    monkeypatch.setattr(connect_server, "server_command", lambda *_: ["false"])
    monkeypatch.setattr(restart_pace, "PAUSE_FIRST_S", 0.0)
    flags = {"controller.directory": str(tmp_path)}
    local = LocalGroup(
        load_settings(flags=flags, environment={}).settings, start_broker=None, embedded_spark=False
    )
    local.spark_server = ConnectServer(SparkSettings(), folder=tmp_path / "spark")
    local.spark_server.process = ProcessIdentity(1, ENDED_AT_ONCE)
    for _ in range(3):
        (line,) = wait_for_lines(local)
        assert "Spark server died and could not be restarted" in line


def wait_for_lines(local: LocalGroup) -> list[str]:
    """What is told once the server that was begun has died."""
    deadline_s = time.monotonic() + 30
    while not (lines := local.repair()):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)  # nothing tells when a process dies
    return lines


def test_a_server_that_never_answers_is_ended_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever polls it learns that it did not answer in time, and it is dead then."""
    monkeypatch.setattr(connect_server, "server_command", lambda *_: ["sleep", "600"])
    server = ConnectServer(SparkSettings(start_timeout="300ms"), folder=tmp_path / "spark")
    server.begin()
    assert not server.is_ready()
    time.sleep(0.4)  # longer than the time-out
    with pytest.raises(ConnectServerStartError, match=r"0\.3 s \(spark\.start_timeout\)") as late:
        server.is_ready()
    assert "--set spark.start_timeout=" in late.value.remedy
    assert server.process is not None
    assert not is_alive(server.process)


def test_a_failed_start_quotes_its_own_log_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the lines of the server before too, which say nothing about this start."""
    monkeypatch.setattr(connect_server, "server_command", lambda *_: ["echo", "no such port"])
    folder = tmp_path / "spark"
    folder.mkdir()
    (folder / "spark.log").write_text("INFO the former server ended\n")
    with pytest.raises(ConnectServerStartError) as died:
        ConnectServer(SparkSettings(), folder=folder).start()
    assert died.value.message.endswith("Its log ends:\n    no such port")


def test_a_former_server_that_still_listens_is_not_taken_for_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start is over when the new server listens, however long the old one held the port."""
    ready = tmp_path / "ready"
    code = (
        "import pathlib, socket, sys, time\n"
        "server = socket.socket()\n"
        "server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "server.bind(('127.0.0.1', int(sys.argv[1])))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "server.listen()\n"
        "time.sleep(60)\n"
    )
    monkeypatch.setattr(
        connect_server,
        "server_command",
        lambda _, port, *__: [sys.executable, "-c", code, str(port)],
    )
    former = socket.create_server(("127.0.0.1", 0))
    server = ConnectServer(SparkSettings(), port=former.getsockname()[1], folder=tmp_path / "spark")
    threading.Timer(0.5, former.close).start()
    with server:
        assert ready.exists()


@pytest.mark.parametrize("compiles_once", [False, True])
def test_java_compiles_once_where_it_is_told_to(compiles_once: bool) -> None:
    """Only then: a server that runs transformations needs Java's whole speed."""
    command = connect_server.server_command(SparkSettings(), 1, compiles_once=compiles_once)
    [java] = [one for one in command if one.startswith("spark.driver.extraJavaOptions=")]
    assert ("-XX:TieredStopAtLevel=1" in java.split()) is compiles_once
