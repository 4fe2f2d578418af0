"""Runs a Spark server's first job, which takes seconds, before a consumer needs the server.

    python -m penstock.pipeline.warm_up sc://127.0.0.1:15002 GROUP TASKS

It runs in the session that the group's consumers share, so that the Python workers start too. A
token that is set comes in the environment.
"""

import os
import sys
from collections.abc import Mapping

from pyspark.errors import PySparkException

from penstock.errors import PenstockError
from penstock.pipeline.pass_through_session import PassThroughSession
from penstock.settings import Secret
from penstock.settings.sections import SparkSettings
from penstock.spark_worker.task import nothing

_TOKEN_VARIABLE = "PENSTOCK_SPARK__TOKEN"  # noqa: S105 -- a name


def warm_up(spark: SparkSettings, group: str, tasks: int) -> None:
    session = PassThroughSession(spark, group, own=None)
    try:
        session.run(nothing, tasks)
    except PySparkException as error:
        raise PenstockError(f"Spark's first job failed: {str(error)[:500]}") from error
    finally:
        session.close()


def warm_up_command(master: str, group: str, tasks: int) -> list[str]:
    """The command that warms up in a process of its own."""
    return [sys.executable, "-m", "penstock.pipeline.warm_up", master, group, str(tasks)]


def warm_up_environment(spark: SparkSettings) -> dict[str, str]:
    token = {} if spark.token is None else {_TOKEN_VARIABLE: spark.token.reveal()}
    return {**os.environ, **token}


def _settings(master: str, environment: Mapping[str, str]) -> SparkSettings:
    token = environment.get(_TOKEN_VARIABLE)
    return SparkSettings(master=master, token=None if token is None else Secret(token))


if __name__ == "__main__":
    warm_up(_settings(sys.argv[1], os.environ), sys.argv[2], int(sys.argv[3]))
