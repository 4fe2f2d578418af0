"""Runs a Spark server's first job, which takes seconds, before a consumer needs the server.

    python -m penstock.pipeline.warm_up sc://127.0.0.1:15002 GROUP TASKS

It runs in the session that the group's consumers share, so that the Python workers start too.
"""

import sys

from pyspark.errors import PySparkException

from penstock.errors import PenstockError
from penstock.pipeline.pass_through_session import PassThroughSession
from penstock.settings.sections import SparkSettings
from penstock.spark_worker.task import nothing


def warm_up(master: str, group: str, tasks: int) -> None:
    session = PassThroughSession(SparkSettings(master=master), group, own=None)
    try:
        session.run(nothing, tasks)
    except PySparkException as error:
        raise PenstockError(f"Spark's first job failed: {str(error)[:500]}") from error
    finally:
        session.close()


def warm_up_command(master: str, group: str, tasks: int) -> list[str]:
    """The command that warms up in a process of its own."""
    return [sys.executable, "-m", "penstock.pipeline.warm_up", master, group, str(tasks)]


if __name__ == "__main__":
    warm_up(sys.argv[1], sys.argv[2], int(sys.argv[3]))
