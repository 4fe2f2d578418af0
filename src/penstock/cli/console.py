"""Where words go: data to stdout, the rest to stderr; no colour unless a person is looking."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import typer
import yaml
from rich.console import Console
from rich.table import Table

from penstock.errors import PenstockError


class OutputFormat(StrEnum):
    """What `-o` takes, as in kubectl."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OUTPUT_OPTION: Any = typer.Option(
    OutputFormat.TABLE, "-o", "--output", help="How to print: a table for people, or JSON or YAML."
)

# rich itself honours NO_COLOR and a stream that is not a terminal.
notes = Console(stderr=True, highlight=False, soft_wrap=True)


def data_console() -> Console:
    return Console(highlight=False)


def say(text: str) -> None:
    """One line of progress or explanation, for people."""
    notes.print(text, markup=False)


def say_error(error: PenstockError) -> None:
    notes.print("error: ", style="bold red", end="")
    notes.print(error.message, markup=False)
    if error.remedy:
        notes.print(f"       {error.remedy}", markup=False)


def print_data(
    data: Mapping[str, Any] | Sequence[Any], output: OutputFormat, table: Table | None = None
) -> None:
    """Print `data` as asked; `table` is the same for people's eyes."""
    if output is OutputFormat.JSON:
        typer.echo(json.dumps(data, indent=2, default=str))
    elif output is OutputFormat.YAML or table is None:
        typer.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)
    else:
        data_console().print(table)
