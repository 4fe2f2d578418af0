"""A Spark server that is away may come; one that refuses a session would refuse again."""

import socket
import subprocess
import sys
import time

import pytest
from pyspark.errors import PySparkException

from penstock.errors import PenstockError, SettingsError, UnreachableError
from penstock.pipeline.session import _not_opened, start_session
from penstock.settings.sections import SparkSettings

HERE = SparkSettings(master="sc://127.0.0.1:1")


class _Code:
    def __init__(self, name: str) -> None:
        self.name = name


class _CallFailed(PySparkException):
    """An error of a call to a server, with a code of gRPC."""

    def __init__(self, code: str) -> None:
        super().__init__(message="the reason")
        self._code = code

    def getGrpcStatusCode(self) -> _Code:  # noqa: N802 -- Spark's name
        return _Code(self._code)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (_CallFailed("UNAVAILABLE"), UnreachableError),
        (_CallFailed("DEADLINE_EXCEEDED"), UnreachableError),
        (_CallFailed("UNAUTHENTICATED"), SettingsError),
        (_CallFailed("INTERNAL"), SettingsError),
        (PySparkException(message="the reason"), SettingsError),
    ],
)
def test_only_a_server_that_does_not_answer_is_waited_for(
    error: PySparkException, kind: type[PenstockError]
) -> None:
    """What the server refuses is quoted, and the settings are named."""
    found = _not_opened(HERE, error)
    assert type(found) is kind
    assert ("the reason" in found.message) == (kind is SettingsError)


@pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED")  # that is what happens here
def test_nobody_listens() -> None:
    """A real client, and a port on which no server is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        with pytest.raises(UnreachableError, match="No Spark Connect server answers"):
            start_session(SparkSettings(master=f"sc://127.0.0.1:{port}"))


# In a process of its own, which can be ended while it asks.
ASKING = """
import sys
from penstock.errors import UnreachableError
from penstock.pipeline.session import start_session
from penstock.settings.sections import SparkSettings
print("asks", flush=True)
while True:
    try:
        start_session(SparkSettings(master=sys.argv[1]))
    except UnreachableError:
        pass
"""


def test_a_server_that_is_back_is_found_soon() -> None:
    """After many refused connections the next attempt comes within two seconds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = probe.getsockname()
    command = [sys.executable, "-c", ASKING, f"sc://127.0.0.1:{address[1]}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            for away_s in (15, 3):
                time.sleep(away_s)  # nobody listens meanwhile
                with socket.create_server(address) as back:
                    back.settimeout(2.5)
                    connection, _ = back.accept()
                    connection.close()
        finally:
            child.kill()


def test_an_address_that_is_none_is_a_setting() -> None:
    """No server would ever answer there."""
    with pytest.raises(SettingsError, match="opens no session"):
        start_session(SparkSettings(master="sc://127.0.0.1:1/;user_id"))
