"""`penstock spark`: runs a Spark Connect server on this machine, shared by thin consumers."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.named_servers import Name, NamedServers
from penstock.cli.options import Overrides, SettingsFile, effective_settings
from penstock.errors import PenstockError
from penstock.jars import cache_directory, spark_sets
from penstock.processes import STOP_GRACE_S, ProcessIdentity, RunningServer

app = typer.Typer(
    help="A Spark Connect server on this machine, shared by thin consumers.",
    no_args_is_help=True,
)


def _state(server: RunningServer) -> str:
    from penstock.pipeline.connect_server import is_listening  # noqa: PLC0415 -- slow: PySpark

    host, _, port = server.address.removeprefix("sc://").rpartition(":")
    return "ready" if is_listening(host, int(port)) else "not answering"


SERVERS = NamedServers("spark", "Spark server", STOP_GRACE_S, _state)


@app.command()
def start(
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="The port to listen on. Default: any free port."),
    ] = None,
    name: Name = "default",
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run until Ctrl-C or SIGTERM.")
    ] = False,
    listen_on: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen on; 0.0.0.0 in a pod. All clients can run code in it.",
        ),
    ] = "127.0.0.1",
    settings: SettingsFile = None,
    overrides: Overrides = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Start a Spark Connect server and print its address.

    It listens on the loopback and runs until `penstock spark stop`. Its memory is
    `spark.server_memory`, its cores are `spark.cores`.

    Example: `export PENSTOCK_SPARK__MASTER=$(penstock spark start)`
    """
    from penstock.pipeline.connect_server import ConnectServer  # noqa: PLC0415 -- slow: PySpark
    from penstock.pipeline.warm_up import warm_up  # noqa: PLC0415 -- slow: PySpark

    SERVERS.refuse_twice(name)
    loaded = effective_settings(settings, overrides)
    fetch_with_progress(spark_sets(loaded.settings.spark.object_store))
    folder = None if foreground else cache_directory() / "run" / "spark" / f"{name}.files"
    server = ConnectServer(
        loaded.settings.spark,
        port=port,
        folder=folder,
        detached=not foreground,
        listen_on=listen_on,
    )
    say("waiting for Spark to answer")
    server.start()
    running = _running(name, server.master, server.process, server.log_file, folder)
    if not foreground:
        SERVERS.remember(running, server.stop)
    say("running a first job, so that consumers need not wait for it")
    try:
        warm_up(server.master, loaded.settings.lake.group, loaded.settings.spark.tasks)
    except PenstockError as error:
        say(str(error))  # consumers meet the same error and report it with more detail
    if foreground:
        SERVERS.stay_with(running, output, server.stop)
    else:
        SERVERS.print_address(running, output)


def _running(
    name: str, master: str, process: ProcessIdentity | None, log_file: Path, folder: Path | None
) -> RunningServer:
    if process is None:
        raise PenstockError("Spark ended right after its start.", remedy=f"Its log: {log_file}")
    return RunningServer(
        name=name,
        address=master,
        processes=(process,),
        log_files=(str(log_file),),
        data_directory=str(folder or log_file.parent),
        is_temporary=True,
    )


@app.command()
def stop(name: Name = "default") -> None:
    """Stop a server that `penstock spark start` started. Stopping twice is no error."""
    SERVERS.stop(name)


@app.command()
def status(output: OutputFormat = OUTPUT_OPTION) -> None:
    """List the servers that `penstock spark start` started."""
    SERVERS.print_status(output)
