"""Starts a Spark session with the same options wherever Spark runs.

`local[N]`, `spark://` and `k8s://` start a JVM in this process; `sc://` connects to a Connect
server and starts none. The options for a server's own start (memory, jars) are in
connect_server.py.
"""

import importlib.util
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.errors import PenstockError, SettingsError, UnreachableError
from penstock.extras import Extra, install_command
from penstock.jars import jar_paths, spark_sets
from penstock.jars.class_archive import class_archive, options_to_use, options_to_write
from penstock.jars.java import find_java
from penstock.pipeline.server_token import require_safe_server
from penstock.settings.sections import SparkSettings

# About three seconds in all. By default the client retries for ten minutes, also at exit; a failed
# batch is planned again anyway.
CONNECT_RETRIES = 5
# What a call to a server that is away, or that is starting or ending, ends with.
_SERVER_AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED"})
QUOTED_CHARACTERS = 500
_JAVA_OPTIONS = (
    "-XX:+UseParallelGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:ParallelGCThreads=2",
    "-XX:-UsePerfData",
)
_COMPILES_ONCE = "-XX:TieredStopAtLevel=1"
_OF_SECRETS = "secret|password|token|access[.]?key|credential|jaas"
REDACTION = f"(?i){_OF_SECRETS}"
# Spark Connect shows each plan as a text of names and values, on its web page and in event logs.
REDACTION_OF_TEXTS = f'(?i)key: "[^"]*(?:{_OF_SECRETS})[^"]*"\\s+value: "(?:[^"\\\\]|\\\\.)*"'


def session_options() -> dict[str, str]:
    """Options that a running session accepts."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
        "spark.sql.redaction.options.regex": REDACTION,
        "spark.sql.redaction.string.regex": REDACTION_OF_TEXTS,
        "spark.sql.files.maxRecordsPerFile": "0",
    }


def spark_class_archive() -> Path:
    """Where the archive of Spark's classes is, or would be."""
    jars = Path(pyspark.__file__).parent / "jars"
    return class_archive("spark", find_java().path, jars.glob("*.jar"))


def start_options(
    spark: SparkSettings,
    *,
    reads_kafka: bool = True,
    writes_archive: Path | None = None,
    compiles_once: bool = False,
) -> dict[str, str]:
    """Options that only the start of a JVM accepts. `compiles_once`: see ConnectServer."""
    if writes_archive is None:
        archive_options = options_to_use(spark_class_archive())
    else:
        archive_options = options_to_write(writes_archive)
    quick = (_COMPILES_ONCE,) if compiles_once else ()
    scratch = Path(tempfile.gettempdir()) / f"penstock-spark-{os.getuid()}"
    sets = spark_sets(spark.object_store) if reads_kafka else []
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": f"{spark.driver_memory // 2**20}m",
        "spark.driver.extraJavaOptions": " ".join(
            [*_JAVA_OPTIONS, *quick, *(f'"{option}"' for option in archive_options)]
        ),
        "spark.jars": ",".join(str(path) for jar_set in sets for path in jar_paths(jar_set)),
        "spark.redaction.regex": REDACTION,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        # Kafka consumers stay open from batch to batch. Each may hold a megabyte or two fetched
        # ahead, so this bounds the heap; further idle consumers are closed.
        "spark.kafka.consumer.cache.capacity": "256",
        "spark.scheduler.mode": "FAIR",
        "spark.speculation": "false",
        **_local_files(spark.object_store),
        # Spark keeps finished queries and jobs for its web page, which is switched off.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "5",
        **session_options(),
    }


def _local_files(object_store: str) -> dict[str, str]:
    """Write no hidden .crc files: Parquet has checksums of its own.

    The S3 writer puts its blocks on the local disk first and needs the usual class.
    """
    if object_store:
        return {}
    return {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}


def leave_connect_mode() -> None:
    """Let this process start a JVM, even if it or its parent used a Connect server."""
    for variable in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
        os.environ.pop(variable, None)


def start_session(
    spark: SparkSettings, *, name: str = "penstock", reads_kafka: bool = True
) -> SparkSession:
    """Start a session, or connect to a server."""
    # PySpark 4.2 warns that pandas 3 is new to it; we use no pandas with it.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    if spark.uses_connect_server:
        return open_connect_session(spark)
    if importlib.util.find_spec("py4j") is None:
        raise SettingsError(
            f"spark.master is {spark.master}, but only Spark's client is installed here.",
            remedy="Name a Connect server (sc://host:port), or install all of Spark: "
            f"{install_command(Extra.SPARK)}",
        )
    leave_connect_mode()
    if spark.master.startswith("local["):
        # Local workers use this Python. On a cluster another one may have to be named.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    builder = builder.master(spark.master).appName(name)
    for option, value in {**start_options(spark, reads_kafka=reads_kafka), **spark.options}.items():
        builder = builder.config(option, value)
    return builder.getOrCreate()  # type: ignore[no-any-return] # the builder of two kinds has no type


def open_connect_session(spark: SparkSettings, *, session_id: str = "") -> SparkSession:
    """A new session on a Connect server, or the one with this id.

    Only a new session becomes the process's default, which Spark's client asks for the types of
    Python functions.
    """
    # Spark's client for Connect servers is not needed with a JVM in this process.
    from pyspark.sql.connect import session as connect  # noqa: PLC0415 -- see above
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 -- see above

    from penstock.pipeline.connect_channel import (  # noqa: PLC0415 -- see above
        RECONNECT_MS_MAX,
        ConnectChannel,
    )

    require_safe_server(spark)
    session: Any = None
    try:
        if session_id:
            channel = ConnectChannel(spark, connect_address(spark.master, session_id))
            session = connect.SparkSession(channel)
        else:
            # As `SparkSession.builder.remote` does, which takes no channel.
            os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
            builder = connect.SparkSession.Builder()
            session = builder.channelBuilder(ConnectChannel(spark, spark.master)).create()
        policy = DefaultPolicy(max_retries=CONNECT_RETRIES, max_backoff=RECONNECT_MS_MAX)
        session.client.set_retry_policies([policy])
        for option, value in {**session_options(), **spark.options}.items():
            _set(session, option, value)
    except PySparkException as error:
        if session is not None:
            disconnect(session)
        if session_id:
            raise  # the shared session's caller tells an expired session from other failures
        raise _not_opened(spark, error) from error
    return session  # type: ignore[no-any-return] # as above


def _not_opened(spark: SparkSettings, error: PySparkException) -> PenstockError:
    """A server that does not answer may come; one that refuses would refuse again."""
    # Only errors of calls to a server have a code.
    code = getattr(error, "getGrpcStatusCode", lambda: None)()
    if code is not None and code.name in _SERVER_AWAY:
        return UnreachableError(
            f"No Spark Connect server answers at {spark.master}.",
            remedy="Start one with `penstock spark start`, or correct spark.master.",
        )
    reason = " ".join(str(error).split())[:QUOTED_CHARACTERS]
    return SettingsError(
        f"The Spark Connect server at {spark.master} opens no session: {reason}",
        remedy="Set spark.token_file, or PENSTOCK_SPARK__TOKEN in the environment."
        if code is not None and code.name == "UNAUTHENTICATED"
        else "Correct spark.master or spark.options.",
    )


def disconnect(session: Any) -> None:
    """Leave a session of a Connect server, which others use or whose server may be gone."""
    session.release_session_on_close = False
    session.stop()


def _set(session: SparkSession, option: str, value: str) -> None:
    """Set an option, unless only the start of a server accepts it.

    `penstock spark start` gives those to the server; another server's owner decides on them.
    """
    try:
        # A session passes options on to Hadoop under Hadoop's own names.
        session.conf.set(option.removeprefix("spark.hadoop."), value)
    except PySparkException as error:
        if not (error.getCondition() or "").startswith("CANNOT_MODIFY"):
            raise


def connect_address(master: str, session_id: str) -> str:
    """The address with a session id; a session belongs to a user, so the user is named too."""
    place, _, parameters = master.partition("/;")
    given = [one for one in parameters.split(";") if one]
    if not any(one.startswith("user_id=") for one in given):
        given.append("user_id=penstock")
    return f"{place.rstrip('/')}/;" + ";".join([*given, f"session_id={session_id}"])
