"""A Spark Connect server opens sessions only for who has its token, and nobody else sees it."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.kafka.secured_broker import make_certificates
from kit.processes import command_lines
from penstock.errors import SettingsError
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.server_token import token_file
from penstock.pipeline.session import disconnect, start_session
from penstock.pipeline.warm_up import warm_up_command, warm_up_environment
from penstock.settings import Secret
from penstock.settings.sections import SparkSettings

pytestmark = pytest.mark.spark
EVERYWHERE = "0.0.0.0"  # noqa: S104 -- the subject
ELSEWHERE = "sc://127.0.0.1:{port}/;use_ssl=true"


def rows(spark: SparkSettings) -> int:
    session = start_session(spark)
    try:
        return session.range(3).count()
    finally:
        disconnect(session)


def test_a_session_needs_the_token(spark_server: ConnectServer) -> None:
    """With it the server works; with none, and with another, it opens no session."""
    port = spark_server.port
    assert rows(SparkSettings(master=spark_server.master)) == 3
    assert rows(SparkSettings(master=f"sc://localhost:{port}")) == 3
    with pytest.raises(SettingsError, match="opens no session") as wrong:
        start_session(SparkSettings(master=spark_server.master, token=Secret("another")))
    assert "another" not in f"{wrong.value}{wrong.value.__cause__}"
    assert "spark.token_file" in wrong.value.remedy
    kept = token_file(port)
    hidden = kept.rename(kept.with_suffix(".hidden"))
    try:
        with pytest.raises(SettingsError, match="opens no session"):
            start_session(SparkSettings(master=spark_server.master))
    finally:
        hidden.rename(kept)


def test_the_token_is_seen_nowhere(spark_server: ConnectServer) -> None:
    """Its file is for this user alone; no command line, log, setting or Spark property has it."""
    file = token_file(spark_server.port)
    token = file.read_text(encoding="utf-8")
    assert len(token) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) & 0o077 == 0
    spark = spark_server.settings_here
    assert spark.token is not None
    assert spark.token.reveal() == token
    session = start_session(spark)
    try:
        session.range(3).count()
        properties = session.sql("SET -v").collect() + session.sql("SET").collect()
        plan: Any = session.sql("EXPLAIN EXTENDED SELECT 1").collect()
    finally:
        disconnect(session)
    for text in (
        *command_lines().values(),
        spark_server.log_file.read_text(encoding="utf-8"),
        spark.model_dump_json(),
        repr(spark),
        str(properties),
        str(plan),
    ):
        assert token not in text


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture(scope="module")
def tls_server(spark_jars: None, certificates: Path) -> Iterator[ConnectServer]:
    given = SparkSettings(
        token=Secret("of-this-test"),
        certificate_file=str(certificates / "broker.pem"),
        certificate_key_file=str(certificates / "broker.key"),
        server_memory=2**29,
    )
    with ConnectServer(given, listen_on=EVERYWHERE) as running:
        yield running


def test_a_server_that_is_reached_from_elsewhere_has_tls(
    tls_server: ConnectServer, certificates: Path
) -> None:
    """Who trusts its certificate and has the token works; Spark itself is on the loopback only."""
    assert tls_server.master == ELSEWHERE.format(port=tls_server.port)
    here = SparkSettings(
        master=tls_server.master,
        token=Secret("of-this-test"),
        certificate_authority_file=str(certificates / "ca.pem"),
    )
    assert rows(here) == 3
    with pytest.raises(SettingsError, match="opens no session"):
        start_session(here.model_copy(update={"token": Secret("another")}))
    listening = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
    inside = tls_server.settings_here.master.rpartition(":")[2]
    addresses = [line.split()[3] for line in listening.splitlines()]
    assert {one.rpartition(":")[0] for one in addresses if one.endswith(f":{inside}")} <= {
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
    }
    assert not token_file(tls_server.port).exists(), "a token that was given is written nowhere"


def test_a_server_elsewhere_without_tls_is_refused(spark_jars: None) -> None:
    """By who would start it and by who would connect to it, unless it is meant."""
    with pytest.raises(SettingsError, match="without TLS"):
        ConnectServer(SparkSettings(), listen_on=EVERYWHERE).start()
    with pytest.raises(SettingsError, match="would not be encrypted"):
        start_session(SparkSettings(master="sc://spark.example:1", token=Secret("x")))
    with pytest.raises(SettingsError, match="There is no token"):
        start_session(SparkSettings(master="sc://spark.example:1/;use_ssl=true"))


def test_a_warm_up_gets_its_token_in_the_environment(tls_server: ConnectServer) -> None:
    """A process of its own, which no argument tells the token."""
    command = warm_up_command(tls_server.settings_here.master, "g", 1)
    assert "of-this-test" not in " ".join(command)
    for environment, is_ok in (
        (warm_up_environment(tls_server.settings_here), True),
        (dict(os.environ), False),
    ):
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert (done.returncode == 0) == is_ok, done.stderr
