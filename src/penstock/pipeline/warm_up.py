"""A Spark server's first job takes seconds: it is run before the first consumer needs one.

    python -m penstock.pipeline.warm_up sc://127.0.0.1:15002 GROUP TASKS

In the session that the group's consumers will share, so that its Python workers are there as well.
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
    """For whoever does not want to wait for it."""
    return [sys.executable, "-m", "penstock.pipeline.warm_up", master, group, str(tasks)]


if __name__ == "__main__":
    warm_up(sys.argv[1], sys.argv[2], int(sys.argv[3]))
