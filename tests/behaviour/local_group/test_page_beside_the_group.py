"""The live page beside a local group."""

import socket
import sys
from pathlib import Path

import pytest

from penstock.local_group import LocalGroup
from penstock.local_group.page_address import free_address
from penstock.processes import start_child
from penstock.settings import Settings, changed_settings
from penstock.settings.sections import PageSettings


def group_in(folder: Path, said: list[str]) -> LocalGroup:
    settings = changed_settings(
        Settings(), {"controller.directory": str(folder), "page.address": "127.0.0.1:0"}
    )
    return LocalGroup(
        settings, start_broker=None, embedded_spark=False, on_progress=said.append, with_page=True
    )


def test_a_free_port_when_the_usual_one_is_taken() -> None:
    """On the same host, so that it is no more open than before."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        found = free_address(PageSettings(address=taken))
    assert found.startswith("127.0.0.1:")
    assert found != taken
    assert free_address(PageSettings(address=taken)) == taken
    nowhere = PageSettings(address="192.0.2.1:80")
    assert free_address(nowhere) == "192.0.2.1:80"


def test_without_the_extra_it_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, with what to install."""
    monkeypatch.setattr("penstock.local_group.group.has_extra", lambda _: False)
    said: list[str] = []
    group_in(tmp_path, said)._start_page()
    assert said == ["without the live page: it needs pip install 'penstock[page]'"]


def test_its_address_is_said_and_given_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that people read is the one at which it listens; it ends with the group."""
    commands: list[list[str]] = []

    def started(command: list[str], log_file: Path) -> object:
        commands.append(command)
        return start_child([sys.executable, "-c", "import time; time.sleep(60)"], log_file=log_file)

    monkeypatch.setattr("penstock.local_group.group.start_child", started)
    said: list[str] = []
    group = group_in(tmp_path, said)
    group._start_page()
    address = commands[0][-1].removeprefix("page.address=")
    assert said[-1] == f"the live page: http://{address}/"
    assert not address.endswith(":0")
    group.stop()
    assert said[-1] == "stopping the page"
