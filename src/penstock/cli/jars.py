"""`penstock jars`: the Java archives for the broker and for Spark."""

from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, notes, print_data, say
from penstock.errors import PenstockError
from penstock.jars import USUAL_SETS, JarSet, fetch, jar_paths, locked_jars
from penstock.jars.cache import set_directory
from penstock.jars.fetch import FetchProgress

app = typer.Typer(
    help="The cached Java archives that the broker and Spark need.", no_args_is_help=True
)


def fetch_with_progress(jar_sets: list[JarSet]) -> None:
    """Fetch what the cache lacks, with a progress bar on a terminal and lines elsewhere."""
    for jar_set in jar_sets:
        total = len(locked_jars(jar_set))
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=notes,
            transient=True,
            disable=not notes.is_terminal,
        ) as bar:
            task = bar.add_task(f"fetching the {jar_set} jars", total=total)

            def arrived(progress: FetchProgress, bar: Progress = bar, task: TaskID = task) -> None:
                bar.update(task, completed=progress.arrived)
                if not notes.is_terminal and progress.arrived % 10 == 1:
                    attempt = f" (attempt {progress.attempt})" if progress.attempt > 1 else ""
                    say(
                        f"fetching the {progress.jar_set} jars: "
                        f"{progress.arrived}/{progress.wanted}{attempt}"
                    )

            fetch(jar_set, on_progress=arrived)


@app.command("fetch")
def fetch_command(
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing on success.")] = False,
    only: Annotated[
        JarSet | None,
        typer.Option(
            help="One set: a consumer does not need `broker`; only a lake in S3 needs `s3`."
        ),
    ] = None,
) -> None:
    """Fetch the jars of broker and Spark into the cache and verify them; quick when complete.

    The cache is $PENSTOCK_CACHE, or ~/.cache/penstock. To use a mirror, set
    $PENSTOCK_JAR_REPOSITORY.
    """
    wanted = list(USUAL_SETS) if only is None else [only]
    fetch_with_progress(wanted)
    for jar_set in wanted if not quiet else ():
        say(f"{jar_set}: {len(locked_jars(jar_set))} jars, verified, in {set_directory(jar_set)}")


@app.command("status")
def status_command(output: OutputFormat = OUTPUT_OPTION) -> None:
    """Show for each set whether the cache has all its jars, unchanged.

    The exit code is 1 when the `broker` or the `spark` set is incomplete.
    """
    rows = []
    for jar_set in JarSet:
        try:
            jar_paths(jar_set)
            state = "ok"
        except PenstockError as error:
            state = str(error)
        rows.append(
            {
                "set": str(jar_set),
                "jars": len(locked_jars(jar_set)),
                "state": state,
                "directory": str(set_directory(jar_set)),
            }
        )
    table = Table("set", "jars", "state", "directory", box=None)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    print_data(rows, output, table)
    if any(row["state"] != "ok" for row in rows if row["set"] in USUAL_SETS):
        raise typer.Exit(1)
