"""Distributes many independent runs over cores or a cluster, with PySpark.

It is the only file of the studies that imports Spark. Tasks and results are plain values; the work
is a function of a module, so that a worker can import it (on a cluster Penstock must be installed
on the workers).
"""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.pipeline.session import leave_connect_mode

Task = TypeVar("Task")
Result = TypeVar("Result")

MASTER_DEFAULT = "local[*]"
BATCH_TASKS = 72
_LOOK_EVERY_S = 0.5


def spread(
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    *,
    master: str = MASTER_DEFAULT,
    on_progress: Callable[[int], None] = lambda _: None,
    on_results: Callable[[list[Result]], None] = lambda _: None,
) -> list[Result]:
    """Run all tasks and return the results in their order.

    `on_progress` gets the number of finished tasks; `on_results` gets every complete batch of
    results, so that an interrupted study loses little.
    """
    if not tasks:
        return []
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    leave_connect_mode()
    builder = SparkSession.builder.master(master).appName("penstock study")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master.startswith("local"):
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
    session = builder.getOrCreate()
    context = session.sparkContext
    context.setLogLevel("ERROR")
    results: list[Result] = []
    try:
        for first in range(0, len(tasks), BATCH_TASKS):
            batch = tasks[first : first + BATCH_TASKS]
            results += _spread_batch(context, batch, work, lambda done: on_progress(first + done))  # noqa: B023 -- called only while this batch runs
            on_results(results[first:])
            on_progress(len(results))
        return results
    finally:
        session.stop()


def _spread_batch(
    context: SparkContext,
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    on_progress: Callable[[int], None],
) -> list[Result]:
    slices = context.parallelize(tasks, len(tasks)).map(work)
    with ThreadPoolExecutor(1) as outside:
        collecting = outside.submit(slices.collect)
        while not wait([collecting], timeout=_LOOK_EVERY_S).done:
            on_progress(_done(context))
        results: list[Result] = collecting.result()
    return results


def _done(context: SparkContext) -> int:
    tracker = context.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
