"""Spark with delta-spark, the reference tool for Delta tables, in a process of its own.

    with DeltaSpark(folder) as spark:
        spark.sql("OPTIMIZE delta.`/lake/orders`")

Its extensions change what a Spark does with every table, so it shares nothing with the Connect
server of the tests. Its jars are in a lock of the tests and are fetched at the first use.
"""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.jars import LockFile, fetch

LOCK = LockFile(Path(__file__).with_name("delta-spark.lock"))
MAIN = Path(__file__).with_name("delta_spark_main.py")


def packages_from_cache(folder: Path) -> str:
    """Arguments of Spark with which `spark.jars.packages` finds delta-spark in the tests' cache.

    What a user's Spark asks Maven Central for, with the same name: it is fetched once, by its lock.
    """
    jars = fetch(LOCK)
    settings = folder / "ivy-settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="cache"/><resolvers><filesystem name="cache">'
        f'<artifact pattern="{jars}/[artifact]-[revision].[ext]"/></filesystem></resolvers>'
        "</ivysettings>",
        encoding="utf-8",
    )
    # The cache has no descriptions of the packages, so it does not say what else they need.
    (needed,) = jars.glob("delta-storage-*.jar")
    ivy = f"--conf spark.jars.ivySettings={settings} --conf spark.jars.ivy={folder / 'ivy'}"
    return f"{ivy} --jars {needed}"


class DeltaSparkError(Exception):
    """What delta-spark refused to do; the text begins with the name of its error."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows that a filter found, and how many files were read for them."""

    rows: list[dict[str, Any]]
    files_read: int


class DeltaSpark:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        jars = sorted(fetch(LOCK).glob("*.jar"))
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "delta-spark.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(MAIN), ",".join(str(jar) for jar in jars)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                text=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process.stdout.close()

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """Run one statement; its rows."""
        rows: list[dict[str, Any]] = self._ask({"sql": statement})["rows"]
        return rows

    def scan(self, table: str, where: str, columns: list[str]) -> Scan:
        """The rows of a table that match, read with file skipping."""
        answer = self._ask({"table": table, "where": where, "columns": columns})
        return Scan(answer["rows"], answer["files_read"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            log = (self._folder / "delta-spark.log").read_text(encoding="utf-8", errors="replace")
            raise AssertionError(f"delta-spark has ended; its log: {log[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise DeltaSparkError(answer["error"])
        return answer
