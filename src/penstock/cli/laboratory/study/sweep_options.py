"""What the studies on Spark share: the option for its master, and the progress bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from penstock.cli.console import notes

SparkMaster: TypeAlias = Annotated[
    str, typer.Option(help="Where Spark runs: local[*], local[2], spark://host:port.")
]


@contextmanager
def study_progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of finished runs."""
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done: bar.update(task, completed=done)
