"""The progress bar of a study."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from penstock.cli.console import notes


@contextmanager
def study_progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of finished runs."""
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done: bar.update(task, completed=done)
