"""What Arrow's Parquet footers cannot say of a column, noted while its rows are copied.

Arrow leaves NaN out of a column's range, although Spark and others hold it for larger than all
numbers, and gives no range for texts above 4 kB. Without this, one column of fractions or of long
texts would cost a joined file the ranges of all its columns.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

_FRACTIONS = ("FLOAT", "DOUBLE")

Path = tuple[str, ...]


@dataclass(slots=True)
class CopiedColumn:
    """All values of one column of fractions or texts. Texts are bytes: they may not be UTF-8."""

    nulls: int = 0
    ends: tuple[Any, Any] | None = None
    has_nan: bool = False

    def add(self, values: Any) -> None:
        self.nulls += values.null_count
        if pa.types.is_floating(values.type):
            self.has_nan = self.has_nan or bool(pa.compute.any(pa.compute.is_nan(values)).as_py())
        else:
            values = values.cast(pa.binary())
        found = pa.compute.min_max(values).as_py()
        if found["min"] is not None:
            low, high = self.ends or (found["min"], found["max"])
            self.ends = (min(low, found["min"]), max(high, found["max"]))


class CopiedValues:
    """The columns of fractions and of texts, over all rows that were added."""

    def __init__(self) -> None:
        self.columns: dict[Path, CopiedColumn] = {}

    def add(self, rows: Any) -> None:
        for name in rows.column_names:
            for path, values in _leaves((name,), rows[name]):
                self.columns.setdefault(path, CopiedColumn()).add(values)


def _leaves(path: Path, values: Any) -> Iterator[tuple[Path, Any]]:
    """The fractions and texts of a column, fields of structs included."""
    kind = values.type
    if pa.types.is_struct(kind):
        for field in kind:
            inner = pa.compute.struct_field(values, field.name)
            yield from _leaves((*path, field.name), inner)
    elif pa.types.is_floating(kind) or pa.types.is_string(kind):
        yield path, values


def columns_without_fractions(schema: Any) -> list[str]:
    """The stored columns whose ranges in a footer that Arrow writes can be trusted.

    A reader that skips parts of a file by the range of a column that has NaN would hide its row.
    """
    empty = io.BytesIO()
    pa.parquet.write_metadata(schema, empty)
    stored = pa.parquet.read_metadata(empty).schema
    columns = [stored.column(index) for index in range(len(stored))]
    return [one.path for one in columns if one.physical_type not in _FRACTIONS]
