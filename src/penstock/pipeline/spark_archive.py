"""Writes the archive of Spark's classes: a server runs the usual first jobs, and ends.

The jobs decide which classes are in the archive: the Python workers' job of every pass-through
batch, and a query that is compiled, shuffled and written as Parquet, as a transformation's is.
"""

import tempfile
from pathlib import Path

from penstock.jars.class_archive import WRITING_GRACE_S, is_trusted, written_archive
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.session import disconnect, open_connect_session, spark_class_archive
from penstock.pipeline.warm_up import warm_up
from penstock.processes import stop
from penstock.settings.sections import SparkSettings


def has_spark_archive() -> bool:
    return is_trusted(spark_class_archive())


def write_spark_archive() -> Path:
    archive = spark_class_archive()
    spark = SparkSettings()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-spark-archive-") as folder,
        written_archive(archive) as partial,
    ):
        server = ConnectServer(spark, folder=Path(folder), writes_archive=partial)
        with server:
            here = server.settings_here
            warm_up(here, "penstock-prepare", here.tasks)
            _write_some_rows(here, Path(folder) / "rows")
            if server.process is not None:
                stop(server.process, grace_s=WRITING_GRACE_S)
    return archive


def _write_some_rows(spark: SparkSettings, folder: Path) -> None:
    session = open_connect_session(spark)
    try:
        rows = session.sql(
            "SELECT from_json(concat('{\"a\":', id, '}'), 'a INT').a AS a,"
            " current_timestamp() AS t, cast(id AS STRING) AS text FROM range(100)"
        )
        rows.groupBy("text", "t").agg({"a": "max"}).coalesce(1).write.parquet(folder.as_uri())
        session.read.parquet(folder.as_uri()).filter("text > '5'").collect()
    finally:
        disconnect(session)
