"""The process of delta_spark.py: one question a line on standard input, one answer a line."""

import json
import os
import sys
from typing import Any, TextIO

OPTIONS = {
    "spark.driver.memory": "512m",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # Small tables on one core: by default each statement has dozens of tasks, VACUUM thousands.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # The number of files read stays in the plan that was executed.
    "spark.sql.adaptive.enabled": "false",
    # Whoever runs VACUUM with less than a week has to know the writers; the tests do.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.logging.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def session(jars: str) -> Any:
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- after standard output was set aside

    builder: Any = SparkSession.builder
    builder = builder.master("local[1]").appName("delta-spark").config("spark.jars", jars)
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def scan(spark: Any, table: str, where: str, columns: list[str]) -> dict[str, Any]:
    found = spark.read.format("delta").load(table).filter(where).select(*columns)
    plan = found._jdf.queryExecution().executedPlan()
    rows = [row.asDict(recursive=True) for row in found.collect()]
    leaves = plan.collectLeaves()
    counts = [leaves.apply(at).metrics().get("numFiles") for at in range(leaves.size())]
    return {"rows": rows, "files_read": sum(one.get().value() for one in counts if one.isDefined())}


def answer(spark: Any, question: dict[str, Any]) -> dict[str, Any]:
    if "sql" in question:
        rows = [row.asDict(recursive=True) for row in spark.sql(question["sql"]).collect()]
        return {"rows": rows}
    return scan(spark, **question)


def serve(jars: str, questions: TextIO, answers: TextIO) -> None:
    spark = session(jars)
    for line in questions:
        try:
            said = answer(spark, json.loads(line))
        except Exception as error:  # noqa: BLE001 -- the other process judges it
            said = {"error": f"{type(error).__name__}: {str(error)[:2000]}"}
        answers.write(json.dumps(said, default=str) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    # Spark prints to standard output: it gets the log, and the answers keep the pipe.
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for variable in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
        os.environ.pop(variable, None)
    serve(sys.argv[1], sys.stdin, pipe)
