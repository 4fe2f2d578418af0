"""One Spark session, the same wherever Spark runs; every option that matters is said.

`local[N]`, `spark://` and `k8s://` start a JVM in this process; `sc://` talks to a Connect server
and starts none. What a server decides at its own start (memory, jars) is in connect_server.py.
"""

import importlib.util
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.errors import SettingsError, UnreachableError
from penstock.extras import Extra, install_command
from penstock.jars import jar_paths, spark_sets
from penstock.settings.sections import SparkSettings

# Some three seconds in all. By itself the client would try for ten minutes, at exit too; a batch
# that fails is planned anew anyway.
CONNECT_RETRIES = 4
REDACTION = "(?i)secret|password|token|access[.]?key|credential|jaas"


def session_options() -> dict[str, str]:
    """What a running session can be told, whoever started its JVM."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
        "spark.sql.redaction.options.regex": REDACTION,
        "spark.sql.files.maxRecordsPerFile": "0",
    }


def start_options(spark: SparkSettings, *, reads_kafka: bool = True) -> dict[str, str]:
    """What only the start of a JVM can be told."""
    scratch = Path(tempfile.gettempdir()) / f"penstock-spark-{os.getuid()}"
    sets = spark_sets(spark.object_store) if reads_kafka else []
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": f"{spark.driver_memory // 2**20}m",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:+ExitOnOutOfMemoryError "
        "-XX:ParallelGCThreads=2 -XX:-UsePerfData",
        "spark.jars": ",".join(str(path) for jar_set in sets for path in jar_paths(jar_set)),
        "spark.redaction.regex": REDACTION,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        # Kafka consumers stay open from batch to batch. Each may hold a megabyte or two that it
        # fetched ahead, so their number bounds the heap; beyond it the idle ones are closed.
        "spark.kafka.consumer.cache.capacity": "256",
        "spark.scheduler.mode": "FAIR",
        "spark.speculation": "false",
        **_local_files(spark.object_store),
        # Finished queries and jobs are remembered for a page that nobody serves.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "5",
        **session_options(),
    }


def _local_files(object_store: str) -> dict[str, str]:
    """Parquet has sums of its own; a hidden .crc beside every file would only be clutter.

    What writes to S3 puts its blocks on the local disk first, and insists on the usual class.
    """
    if object_store:
        return {}
    return {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}


def leave_connect_mode() -> None:
    """A session of one's own can start, also after this process or its parent used a server."""
    for variable in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
        os.environ.pop(variable, None)


def start_session(
    spark: SparkSettings, *, name: str = "penstock", reads_kafka: bool = True
) -> SparkSession:
    """The session; for a Connect server an error that says how to start one."""
    # PySpark 4.2 says once that pandas 3 is new to it; we hand it no pandas at all.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    if spark.master.startswith("sc://"):
        return open_connect_session(spark)
    if importlib.util.find_spec("py4j") is None:
        raise SettingsError(
            f"spark.master is {spark.master}, but only Spark's client is installed here.",
            remedy="Name a Connect server (sc://host:port), or install all of Spark: "
            f"{install_command(Extra.SPARK)}",
        )
    leave_connect_mode()
    if spark.master.startswith("local["):
        # Python workers are ours too. On a cluster another Python may have to be named.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    builder = builder.master(spark.master).appName(name)
    for option, value in {**start_options(spark, reads_kafka=reads_kafka), **spark.options}.items():
        builder = builder.config(option, value)
    return builder.getOrCreate()  # type: ignore[no-any-return] # the builder of two kinds has no type


def open_connect_session(spark: SparkSettings, *, session_id: str = "") -> SparkSession:
    """A session of one's own on a Connect server, or the one with this id."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 -- only here

    builder: Any = SparkSession.builder
    try:
        session = builder.remote(connect_address(spark.master, session_id)).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=CONNECT_RETRIES)])
        for option, value in {**session_options(), **spark.options}.items():
            # A session hands what it is told on to Hadoop, by Hadoop's own names.
            session.conf.set(option.removeprefix("spark.hadoop."), value)
    except PySparkException as error:
        if session_id:
            raise  # whoever shares a session wants to know what is wrong with it
        raise UnreachableError(
            f"No Spark Connect server answers at {spark.master}.",
            remedy="Start one with `penstock spark start`, or mend spark.master.",
        ) from error
    return session  # type: ignore[no-any-return] # as above


def connect_address(master: str, session_id: str) -> str:
    """The address with the session's id; a session belongs to a user, so the user is named too."""
    if not session_id:
        return master
    place, _, parameters = master.partition("/;")
    given = [one for one in parameters.split(";") if one]
    if not any(one.startswith("user_id=") for one in given):
        given.append("user_id=penstock")
    return f"{place.rstrip('/')}/;" + ";".join([*given, f"session_id={session_id}"])
