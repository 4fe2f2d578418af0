"""`penstock spark`: one Spark Connect server on this machine, shared by thin consumers."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.options import Overrides, SettingsFile, effective_settings
from penstock.errors import PenstockError, UsageError
from penstock.jars import JarSet, cache_directory
from penstock.processes import ProcessIdentity, RunningServer, ServerRegistry

app = typer.Typer(
    help="A Spark Connect server on this machine, shared by thin consumers.",
    no_args_is_help=True,
)
Name = Annotated[str, typer.Option("--name", help="Which one, when several run side by side.")]
STOP_GRACE_S = 20.0


def _registry() -> ServerRegistry:
    return ServerRegistry(cache_directory() / "run" / "spark")


@app.command()
def start(
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Where to listen. Default: any free port."),
    ] = None,
    name: Name = "default",
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay, and stop it with Ctrl-C.")
    ] = False,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Start a Spark Connect server and print its address.

    It listens on the loopback only and stays until `penstock spark stop`. Its memory is
    `spark.server_memory`, its cores are `spark.cores`.

    Example: `export PENSTOCK_SPARK__MASTER=$(penstock spark start)`
    """
    from penstock.pipeline.connect_server import ConnectServer  # noqa: PLC0415 -- PySpark is slow to import

    known = _registry().find(name)
    if known is not None and known.living:
        raise UsageError(
            f"A Spark server named {name!r} runs already at {known.address}.",
            remedy=f"Stop it with `penstock spark stop --name {name}`, or give another --name.",
        )
    loaded = effective_settings(settings, overrides)
    fetch_with_progress([JarSet.SPARK])
    folder = None if foreground else cache_directory() / "run" / "spark" / f"{name}.files"
    server = ConnectServer(loaded.settings.spark, port=port, folder=folder, detached=not foreground)
    say("waiting for Spark to answer")
    server.start()
    running = _running(name, server.master, server.process, server.log_file, folder)
    if foreground:
        with server:
            _print_address(running, output)
            say("Ctrl-C stops it.")
            while running.living:
                time.sleep(0.5)  # until Ctrl-C
            raise PenstockError("Spark died.", remedy=f"Its log: {server.log_file}")
    try:
        _registry().remember(running)
    except OSError as error:
        server.stop()
        raise PenstockError(f"Could not note the server down: {error}.") from error
    _print_address(running, output)


def _running(
    name: str, master: str, process: ProcessIdentity | None, log_file: Path, folder: Path | None
) -> RunningServer:
    if process is None:
        raise PenstockError("Spark ended at once.", remedy=f"Its log: {log_file}")
    return RunningServer(
        name=name,
        address=master,
        processes=(process,),
        log_files=(str(log_file),),
        data_directory=str(folder or log_file.parent),
        is_temporary=True,
    )


def _print_address(server: RunningServer, output: OutputFormat) -> None:
    if output is OutputFormat.TABLE:
        typer.echo(server.address)
    else:
        print_data(_described(server), output)


@app.command()
def stop(name: Name = "default") -> None:
    """Stop a server that `penstock spark start` started. Stopping twice is no error."""
    server = _registry().find(name)
    if server is None:
        say(f"No Spark server named {name!r} is running.")
        return
    say(f"stopping {server.address}")
    _registry().stop(server, grace_s=STOP_GRACE_S)


@app.command()
def status(output: OutputFormat = OUTPUT_OPTION) -> None:
    """List the servers that `penstock spark start` started."""
    servers = [_described(server) for server in _registry().all()]
    table = Table("name", "address", "state", "log", box=None)
    for one in servers:
        table.add_row(one["name"], one["address"], one["state"], one["log_files"])
    if output is OutputFormat.TABLE and not servers:
        say("No Spark server is running. `penstock spark start` starts one.")
        return
    print_data(servers, output, table)


def _described(server: RunningServer) -> dict[str, str]:
    return {
        "name": server.name,
        "address": server.address,
        "state": _state(server),
        "log_files": ", ".join(server.log_files),
    }


def _state(server: RunningServer) -> str:
    from penstock.pipeline.connect_server import is_listening  # noqa: PLC0415 -- as above

    if not server.living:
        return "dead"
    host, _, port = server.address.removeprefix("sc://").rpartition(":")
    return "ready" if is_listening(host, int(port)) else "not answering"
