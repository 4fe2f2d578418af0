"""Printing: data to stdout, messages to stderr, colour only on a terminal."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from typing import Any

import typer
import yaml
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.errors import PenstockError


class OutputFormat(StrEnum):
    """The values of `-o`, as in kubectl."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OUTPUT_OPTION: Any = typer.Option(
    OutputFormat.TABLE, "-o", "--output", help="The output format: a table, JSON or YAML."
)

# The columns by which people know and copy something.
_NAMES = frozenset(
    {"check", "id", "name", "option", "partition", "set", "table", "topic", "TOPIC", "what", "when"}
)
_PADDING = 2  # around each cell

# rich itself respects NO_COLOR and turns colour off when the stream is not a terminal.
notes = Console(stderr=True, highlight=False, soft_wrap=True)


def data_console() -> Console:
    return Console(highlight=False)


@contextmanager
def foreign_output_to_stderr() -> Iterator[None]:
    """While a user's code runs: what it prints, or a program that it starts, is no data of ours."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def say(text: str) -> None:
    """Print one line of progress or explanation to stderr."""
    notes.print(text, markup=False)


def say_error(error: PenstockError) -> None:
    notes.print("error: ", style="bold red", end="")
    notes.print(error.message, markup=False)
    if error.remedy:
        notes.print(f"       {error.remedy}", markup=False)


def print_data(
    data: Mapping[str, Any] | Sequence[Any], output: OutputFormat, table: Table | None = None
) -> None:
    """Print `data` in the chosen format; `table` is the same data as a table."""
    if output is OutputFormat.JSON:
        typer.echo(json.dumps(data, indent=2, default=str))
    elif output is OutputFormat.YAML or table is None:
        typer.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)
    else:
        data_console().print(whole(table))


def whole(table: Table) -> Table:
    """The table with its rows, so that no name is cut: what explains is folded where it is wide.

    Names keep to one line if they leave room for the headers of the others.
    """
    left = data_console().width
    for column in table.columns:
        column.overflow = "fold"
        column.min_width = len(str(column.header))
        left -= column.min_width + _PADDING
    for column in table.columns:
        if str(column.header) in _NAMES:
            longest = max((cell_len(_plain(cell)) for cell in column.cells), default=0)
            left -= max(0, longest - (column.min_width or 0))
            column.no_wrap = left >= 0
    return table


def _plain(cell: Any) -> str:
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain
