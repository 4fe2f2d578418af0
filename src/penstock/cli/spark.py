"""`penstock spark`: runs a Spark Connect server on this machine, shared by thin consumers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.named_servers import Name, NamedServers
from penstock.cli.options import Overrides, SettingsFile, effective_settings
from penstock.cli.told_progress import ToldProgress
from penstock.errors import PenstockError
from penstock.jars import cache_directory, spark_sets
from penstock.processes import STOP_GRACE_S, RunningServer

if TYPE_CHECKING:
    from penstock.pipeline.connect_server import ConnectServer

app = typer.Typer(
    help="A Spark Connect server on this machine, shared by thin consumers.",
    no_args_is_help=True,
)


def _state(server: RunningServer) -> str:
    from penstock.pipeline.connect_server import is_listening  # noqa: PLC0415 -- slow: PySpark

    host, _, port = _place(server).rpartition(":")
    return "ready" if is_listening(host, int(port)) else "not answering"


def _place(server: RunningServer) -> str:
    """host:port of a server's address."""
    return server.address.removeprefix("sc://").partition("/")[0]


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
            help="The address to listen on; 0.0.0.0 in a pod. Another than the loopback needs TLS.",
        ),
    ] = "127.0.0.1",
    settings: SettingsFile = None,
    overrides: Overrides = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Start a Spark Connect server and print its address.

    It listens on the loopback and runs until `penstock spark stop`. Its memory is
    `spark.server_memory`, its cores are `spark.cores`. It opens no session without its token, which
    is made at the start unless `spark.token` is set; clients of the same user on this machine find
    it. Others need `spark.token_file` and TLS (`spark.certificate_file`).

    Example: `export PENSTOCK_SPARK__MASTER=$(penstock spark start)`
    """
    from penstock.pipeline.connect_server import ConnectServer  # noqa: PLC0415 -- slow: PySpark
    from penstock.pipeline.server_token import token_file  # noqa: PLC0415 -- slow: PySpark
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
    with ToldProgress("waiting for Spark to answer"):
        server.start()
    running = _running(name, server, folder)
    if loaded.settings.spark.token is None:
        say(f"its token is in {token_file(server.port)}, for this user only")
    if not foreground:
        SERVERS.remember(running, server.stop)
    try:
        with ToldProgress("running a first job, so that consumers need not wait for it"):
            warm_up(server.settings_here, loaded.settings.lake.group, loaded.settings.spark.tasks)
    except PenstockError as error:
        say(str(error))  # consumers meet the same error and report it with more detail
    if foreground:
        SERVERS.stay_with(running, output, server.stop)
    else:
        SERVERS.print_address(running, output)


def _running(name: str, server: "ConnectServer", folder: Path | None) -> RunningServer:
    if server.process is None:
        raise PenstockError(
            "Spark ended right after its start.", remedy=f"Its log: {server.log_file}"
        )
    tls = () if server.tls_process is None else (server.tls_process,)
    return RunningServer(
        name=name,
        address=server.master,
        processes=(server.process, *tls),
        log_files=(str(server.log_file),),
        data_directory=str(folder or server.log_file.parent),
        is_temporary=True,
    )


@app.command()
def stop(name: Name = "default") -> None:
    """Stop a server that `penstock spark start` started. Stopping twice is no error."""
    known = SERVERS.registry.find(name)
    SERVERS.stop(name)
    if known is not None:
        from penstock.pipeline.server_token import forget_token  # noqa: PLC0415 -- slow: PySpark

        forget_token(int(_place(known).rpartition(":")[2]))


@app.command()
def status(output: OutputFormat = OUTPUT_OPTION) -> None:
    """List the servers that `penstock spark start` started."""
    SERVERS.print_status(output)
