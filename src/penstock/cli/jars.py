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
            # Shown when the first one arrives: mostly the cache has all of them.
            task = bar.add_task(f"fetching the {jar_set} jars", total=total, visible=False)

            def arrived(progress: FetchProgress, bar: Progress = bar, task: TaskID = task) -> None:
                bar.update(task, completed=progress.arrived, visible=True)
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


@app.command("prepare")
def prepare_command(
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing on success.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Write them even if they exist.")] = False,
) -> None:
    """Let Java keep the classes of broker and Spark: each start then takes half the time.

    It starts and ends each of them once, which takes about a minute, and is quick when that was
    done. The archives take 210 MB of the cache, for each Java and each set of jars.
    """
    from penstock.laboratory.broker import (  # noqa: PLC0415 -- Kafka's client is slow to import
        has_broker_archive,
        write_broker_archive,
    )
    from penstock.pipeline.spark_archive import (  # noqa: PLC0415 -- so is Spark's
        has_spark_archive,
        write_spark_archive,
    )

    for name, is_there, write in (
        ("broker", has_broker_archive, write_broker_archive),
        ("Spark", has_spark_archive, write_spark_archive),
    ):
        if again or not is_there():
            say(f"letting Java keep the classes of {name} for quicker starts")
            write()
        if not quiet:
            say(f"{name}: its classes are kept for quicker starts")


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
