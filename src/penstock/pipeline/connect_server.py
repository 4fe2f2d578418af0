"""A Spark Connect server on this machine: one JVM that many thin consumers share.

    with ConnectServer(settings.spark) as server:
        server.master            # sc://127.0.0.1:port

It listens on the loopback unless told otherwise, has a bounded heap, writes to a log file, and ends
with the process that started it, unless started `detached` for `penstock spark start`. Who opens a
session can run code in it, so it opens none without its token (server_token.py). Where it can be
reached from elsewhere it has TLS: then Spark itself listens on the loopback, behind tls_front.py.
"""

import importlib.util
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import PenstockError, SettingsError
from penstock.extras import Extra, MissingExtraError, install_command
from penstock.jars.java import find_java
from penstock.model.sentences import duration_text
from penstock.pipeline.server_token import SERVER_VARIABLE, forget_token, make_token
from penstock.pipeline.session import start_options
from penstock.pipeline.tls_front import front_command
from penstock.processes import (
    STOP_GRACE_S,
    LogLines,
    ProcessIdentity,
    is_alive,
    start_child,
    start_detached,
    stop,
)
from penstock.settings import Secret
from penstock.settings.sections import SparkSettings
from penstock.settings.sections.addresses import is_loopback

FREE_TIMEOUT_S = 10.0
HOST = "127.0.0.1"
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 -- a name for it, chosen by the operator
MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
QUOTED_LINES = 12
_LOOK_AGAIN_S = 0.1


class ConnectServerStartError(PenstockError):
    """The server did not come up; the message quotes its log."""


class ConnectServer:
    def __init__(
        self,
        spark: SparkSettings,
        *,
        port: int | None = None,
        folder: Path | None = None,
        detached: bool = False,
        listen_on: str = HOST,
        writes_archive: Path | None = None,
        compiles_once: bool = False,
    ) -> None:
        """`writes_archive`: the archive of Spark's classes that it writes when it ends.

        `compiles_once`: Java starts in half the time and stays slower. It is for a server that only
        starts Python workers; a transformation needs Java's whole speed.
        """
        self._spark = spark
        self._compiles_once = compiles_once
        self._writes_archive = writes_archive
        self._listen_on = listen_on
        self._given_folder = folder
        self._detached = detached
        self.port = port or _free_port()
        self._has_tls = bool(spark.certificate_file) and not is_loopback(listen_on)
        self._spark_port = _free_port() if self._has_tls else self.port
        self._token: Secret | None = spark.token
        self.process: ProcessIdentity | None = None
        self.tls_process: ProcessIdentity | None = None
        self._begun_s = 0.0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def master(self) -> str:
        return f"sc://{self._reached_at}:{self.port}{'/;use_ssl=true' if self._has_tls else ''}"

    @property
    def settings_here(self) -> SparkSettings:
        """For clients in this process: Spark itself, with its token."""
        at = HOST if self._has_tls else self._reached_at
        given = {"master": f"sc://{at}:{self._spark_port}", "token": self._token}
        return self._spark.model_copy(update=given)

    @property
    def _reached_at(self) -> str:
        """Who listens everywhere is reached by the loopback too."""
        return HOST if self._listen_on in EVERYWHERE else self._listen_on

    @property
    def log_file(self) -> Path:
        return self.folder / "spark.log"

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        self.begin()
        try:
            while not self.is_ready():
                time.sleep(_LOOK_AGAIN_S)  # nothing tells us; asking is the only way to know
        except BaseException:
            self._end_failed()
            raise
        return self

    def begin(self) -> None:
        """Start the server; `is_ready` says when it answers."""
        find_java()
        self._require_safe()
        self.folder = self._given_folder or Path(tempfile.mkdtemp(prefix="penstock-spark-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._wait_until_free()
        if self._token is None:
            self._token = make_token(self.port)
        self._log = LogLines.from_now(self.log_file)
        start = start_detached if self._detached else start_child
        self.process = start(
            server_command(
                self._spark,
                self._spark_port,
                HOST if self._has_tls else self._listen_on,
                self._writes_archive,
                self._compiles_once,
            ),
            log_file=self.log_file,
            environment={**server_environment(), SERVER_VARIABLE: self._token.reveal()},
        )
        if self._has_tls:
            files = (self._spark.certificate_file, self._spark.certificate_key_file)
            self.tls_process = start(
                front_command(self._listen_on, self.port, self._spark_port, *files),
                log_file=self.log_file,
            )
        self._begun_s = time.monotonic()

    def _require_safe(self) -> None:
        if is_loopback(self._listen_on) or self._has_tls or self._spark.insecure:
            return
        raise SettingsError(
            f"A Spark server that listens on {self._listen_on} without TLS shows its token and "
            "everything else to who is on the way.",
            remedy="Set spark.certificate_file and spark.certificate_key_file. If a server without "
            "TLS is meant, say so: spark.insecure: true.",
        )

    def is_ready(self) -> bool:
        """Whether the server that was begun answers. One that never will is ended, and raises."""
        if is_listening(self._reached_at, self.port) and (
            not self._has_tls or is_listening(HOST, self._spark_port)
        ):
            return True
        if not self._is_alive():
            error = ConnectServerStartError(f"Spark died while starting.{self._quoted()}")
        elif time.monotonic() - self._begun_s > self._spark.start_timeout:
            limit = duration_text(self._spark.start_timeout)
            error = ConnectServerStartError(
                f"Spark did not answer within {limit} (spark.start_timeout).{self._quoted()}",
                remedy="If it was still starting, give it more time: "
                "--set spark.start_timeout=10m.",
            )
        else:
            return False
        self._end_failed()
        raise error

    def _is_alive(self) -> bool:
        processes = [self.process, self.tls_process] if self._has_tls else [self.process]
        return all(one is not None and is_alive(one) for one in processes)

    def _end_failed(self) -> None:
        failed = self.process
        self.stop(remove_log=False)
        self.process = failed  # whoever looks after the server sees that it is dead

    def _wait_until_free(self) -> None:
        """A former server counts as dead a moment before the last of its threads is gone.

        Until then it holds the port, and would be taken for the new one.
        """
        deadline = time.monotonic() + FREE_TIMEOUT_S
        while is_listening(self._reached_at, self.port) and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)  # nothing tells us; asking is the only way to know

    def stop(self, *, remove_log: bool = True) -> None:
        """End the server; a temporary folder goes with it. Safe to call twice."""
        if self.tls_process is not None:
            stop(self.tls_process, grace_s=STOP_GRACE_S)
            self.tls_process = None
        if self.process is not None:
            stop(self.process, grace_s=STOP_GRACE_S)
            self.process = None
        if self._spark.token is None:
            forget_token(self.port)
            self._token = None
        if remove_log and self._given_folder is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _quoted(self) -> str:
        text = self._log.text()
        lines = "\n".join(f"    {line}" for line in text.splitlines()[-QUOTED_LINES:])
        return f" Its log ends:\n{lines}" if lines else " It wrote no log."


def spark_home() -> Path:
    """Where PySpark keeps Spark, without importing it."""
    found = importlib.util.find_spec("pyspark")
    origin = None if found is None else found.origin
    if origin is None or not (Path(origin).parent / "jars").is_dir():
        raise MissingExtraError(
            "A Spark server needs all of Spark, which is not installed here.",
            remedy=f"Run: {install_command(Extra.SPARK)}",
        )
    return Path(origin).parent


def server_command(
    spark: SparkSettings,
    port: int,
    listen_on: str = HOST,
    writes_archive: Path | None = None,
    compiles_once: bool = False,
) -> list[str]:
    """`spark-submit` becomes the JVM by `exec`, so its number is the server's."""
    local = spark.master if not spark.uses_connect_server else f"local[{spark.tasks}]"
    options = {
        **start_options(spark, writes_archive=writes_archive, compiles_once=compiles_once),
        "spark.driver.memory": f"{spark.server_memory // 2**20}m",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.connect.grpc.binding.address": listen_on,
        "spark.connect.grpc.binding.port": str(port),
        # Sessions of consumers that died are forgotten soon; finished operations at once.
        "spark.connect.session.manager.defaultSessionTimeout": "10m",
        "spark.connect.session.manager.closedSessionsTombstonesSize": "100",
        "spark.connect.execute.manager.abandonedTombstonesSize": "100",
        "spark.connect.execute.manager.detachedTimeout": "1m",
        "spark.sql.connect.ui.retainedSessions": "20",
        "spark.sql.connect.ui.retainedStatements": "20",
        **spark.options,
    }
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", local]
    for name in sorted(options):
        command += ["--conf", f"{name}={options[name]}"]
    return [*command, "--class", MAIN_CLASS, "--name", "penstock-spark", "spark-internal"]


def server_environment() -> dict[str, str]:
    """Python workers run with our Python and find the modules we find."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return {
        **kept,
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in [str(Path.cwd()), *sys.path] if path),
        "SPARK_LOCAL_IP": HOST,
    }


def is_listening(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
