"""Applies the user's transformation, a function from DataFrame to DataFrame.

It takes the raw Kafka columns and returns the table's. To make a record a dead letter it sets the
reserved column `_undecodable` to the reason (null for good records) and keeps `topic`,
`partition`, `offset`, `key` and `value`. It must be deterministic: a batch that is repeated after
a crash has to give the same rows again.
"""

import difflib
import importlib
import os
import sys
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import Observation, functions

from penstock.pipeline.failures import (
    ENDS_THE_PROCESS,
    TransformationFailedError,
    TransformationMissingError,
)
from penstock.settings.sections import TableSettings
from penstock.settings.sections.lake import repeated
from penstock.spark_worker.record_columns import DATE_COLUMN
from penstock.transformations import UNDECODABLE, Transformation

DEAD_LETTER_COLUMNS = ("topic", "partition", "offset", "reason", "key", "value")
_NEEDED_FOR_DEAD_LETTERS = ("topic", "partition", "offset", "key", "value")


@dataclass(frozen=True, slots=True)
class Transformed:
    """The table's rows, and the dead letters if the transformation can make any."""

    rows: Any
    dead_letters: Any | None = None
    undecodable: Observation | None = None


@cache
def load_transformation(name: str) -> Transformation:
    module_name, _, function_name = name.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), function_name)
    except ENDS_THE_PROCESS:
        raise
    except BaseException as error:  # the module's own code runs, and may raise anything
        kind = "" if isinstance(error, (ImportError, AttributeError)) else type(error).__name__
        raise TransformationMissingError(
            f"The transformation {name} cannot be imported: {kind and f'{kind}: '}{error}.",
            remedy=_where_python_looks(module_name)
            if isinstance(error, ModuleNotFoundError) and _is_part_of(error.name, module_name)
            else f"Mend it; importing {module_name} in Python shows the whole error.",
        ) from error
    if not callable(found):
        raise TransformationMissingError(f"The transformation {name} is not a function.")
    return found  # type: ignore[no-any-return] # the user's function; checked at use


def _is_part_of(missing: str | None, module: str) -> bool:
    """Whether it is the module itself, or a package above it, that is not there."""
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def _where_python_looks(module: str) -> str:
    """Said here because `penstock` does not search the directory in which it was started."""
    given = os.environ.get("PYTHONPATH", "")
    there = [file.stem for one in given.split(os.pathsep) if one for file in Path(one).glob("*.py")]
    near = difflib.get_close_matches(module, there, n=1)
    meant = f"Did you mean {near[0]}, which is there? " if near else ""
    return (
        f"{meant}PYTHONPATH is {given or 'not set'}. "
        "Set PYTHONPATH to the folder that has the module, or install its package: Python does not "
        "look in the current directory (docs/transformations.md). It also looked in the packages "
        f"of {sys.executable}."
    )


def transform(raw: Any, table: TableSettings) -> Transformed:
    """Apply the table's transformation; Spark runs nothing yet."""
    rows = _apply(raw, table)
    columns = set(rows.columns)
    dead_letters = undecodable = None
    if UNDECODABLE in columns:
        _require(columns, _NEEDED_FOR_DEAD_LETTERS, table, "to mark records undecodable")
        reason = functions.col(UNDECODABLE)
        undecodable = Observation()
        rows = rows.observe(undecodable, functions.count(reason).alias("undecodable"))
        dead_letters = rows.filter(reason.isNotNull()).withColumn("reason", reason.cast("string"))
        dead_letters = dead_letters.select(*DEAD_LETTER_COLUMNS)
        rows = rows.filter(reason.isNull()).drop(UNDECODABLE)
    if DATE_COLUMN in table.partition_by and DATE_COLUMN not in columns:
        _require(columns, ("timestamp",), table, "to partition by date")
        rows = rows.withColumn(DATE_COLUMN, functions.to_date("timestamp"))
        columns.add(DATE_COLUMN)
    if table.columns:
        _require(columns, table.columns, table, "as the settings ask")
        rows = rows.select(*table.columns)
    _require(columns, table.partition_by, table, "to partition by them")
    return Transformed(rows, dead_letters, undecodable)


def _apply(raw: Any, table: TableSettings) -> Any:
    if not table.transformation:
        return raw
    function = load_transformation(table.transformation)
    _make_active(raw.sparkSession)
    try:
        rows = function(raw)
    except ENDS_THE_PROCESS:
        raise
    except BaseException as error:  # also `sys.exit`, and a panic of native code
        raise TransformationFailedError(
            f"The transformation {table.transformation} raised {type(error).__name__}: {error}"
        ) from error
    if not hasattr(rows, "columns") or not hasattr(rows, "write"):
        kind = type(rows)
        where = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        raise TransformationFailedError(
            f"The transformation {table.transformation} returned {where}{kind.__name__}, "
            "no DataFrame of Spark."
        )
    twice = repeated(rows.columns)
    if twice:
        raise TransformationFailedError(
            f"The transformation {table.transformation} gives the column {twice} more than once; "
            "tables do not tell upper from lower case.",
            remedy="Rename or drop one of them.",
        )
    return rows


def _make_active(session: Any) -> None:
    """Let a transformation that asks for the active session find the one that its records are in.

    Spark's client asks it whenever a Python function is declared. It is the first session that the
    process opened, whose server may have ended since.
    """
    active = getattr(type(session), "_active_session", None)  # only a Connect server's session
    if isinstance(active, threading.local):
        active.session = session


def _require(
    columns: set[str], wanted: list[str] | tuple[str, ...], table: TableSettings, purpose: str
) -> None:
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise TransformationFailedError(
            f"The rows for table {table.table} have no column {', '.join(missing)}, {purpose}.",
            remedy="Keep the columns in the transformation, or correct lake.tables.",
        )
