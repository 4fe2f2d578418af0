"""`penstock broker`: a real Kafka on this machine, for trying things out."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from penstock.broker import BrokerPlan, EmbeddedKafka
from penstock.broker.embedded import STOP_GRACE_S
from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.jars import fetch_with_progress
from penstock.errors import PenstockError, UnreachableError, UsageError
from penstock.jars import JarSet, cache_directory
from penstock.kafka_io.administration import Administration
from penstock.processes import RunningServer, ServerRegistry
from penstock.settings.sections import KafkaSettings

app = typer.Typer(
    help="A real Apache Kafka on this machine, for trying things out and for tests.",
    no_args_is_help=True,
)
Name = Annotated[str, typer.Option("--name", help="Which one, when several run side by side.")]


def _registry() -> ServerRegistry:
    return ServerRegistry(cache_directory() / "run" / "broker")


@app.command()
def start(
    brokers: Annotated[int, typer.Option(min=1, max=9, help="How many brokers.")] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where to keep its data. Default: a temporary directory.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Where to listen. Default: any free port."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    heap: Annotated[int, typer.Option(min=128, help="Memory for each broker, in MiB.")] = 512,
    name: Name = "default",
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay, and stop it with Ctrl-C.")
    ] = False,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Start a broker and print its address.

    It stays until `penstock broker stop`. With a temporary directory its data goes with it.

    Example: `export PENSTOCK_KAFKA__BOOTSTRAP_SERVERS=$(penstock broker start)`
    """
    known = _registry().find(name)
    if known is not None and known.living:
        raise UsageError(
            f"A broker named {name!r} runs already at {known.address}.",
            remedy=f"Stop it with `penstock broker stop --name {name}`, or give another --name.",
        )
    fetch_with_progress([JarSet.BROKER])
    kafka = EmbeddedKafka(
        BrokerPlan(brokers=brokers, host=host, heap_mib=heap),
        data_directory=data_dir,
        port=port,
        detached=not foreground,
        on_progress=say,
    )
    with_grace = kafka.start()
    server = RunningServer(
        name=name,
        address=kafka.bootstrap_servers,
        processes=tuple(node.process for node in kafka.nodes.values()),
        log_files=tuple(str(node.log_file) for node in kafka.nodes.values()),
        data_directory=str(kafka.directory),
        is_temporary=kafka.is_temporary,
    )
    if foreground:
        with with_grace:
            _print_address(server, output)
            say("Ctrl-C stops it.")
            while all(node.is_alive for node in kafka.nodes.values()):
                time.sleep(0.5)  # until Ctrl-C
            raise PenstockError("A broker died.", remedy=f"Its log: {server.log_files[0]}")
    try:
        _registry().remember(server)
    except OSError as error:
        kafka.stop()
        raise PenstockError(f"Could not note the broker down: {error}.") from error
    _print_address(server, output)


def _print_address(server: RunningServer, output: OutputFormat) -> None:
    if output is OutputFormat.TABLE:
        typer.echo(server.address)
    else:
        print_data(_described(server), output)


@app.command()
def stop(name: Name = "default") -> None:
    """Stop a broker that `penstock broker start` started. Stopping twice is no error."""
    server = _registry().find(name)
    if server is None:
        say(f"No broker named {name!r} is running.")
        return
    say(f"stopping {server.address}")
    _registry().stop(server, grace_s=STOP_GRACE_S)


@app.command()
def status(output: OutputFormat = OUTPUT_OPTION) -> None:
    """List the brokers that `penstock broker start` started."""
    servers = [_described(server) for server in _registry().all()]
    table = Table("name", "address", "state", "brokers", "data", box=None)
    for one in servers:
        table.add_row(
            one["name"], one["address"], one["state"], one["living"], one["data_directory"]
        )
    if output is OutputFormat.TABLE and not servers:
        say("No broker is running. `penstock broker start` starts one.")
        return
    print_data(servers, output, table)


def _described(server: RunningServer) -> dict[str, str]:
    return {
        "name": server.name,
        "address": server.address,
        "state": _state(server),
        "living": f"{server.living}/{len(server.processes)}",
        "data_directory": server.data_directory,
        "log_files": ", ".join(server.log_files),
    }


def _state(server: RunningServer) -> str:
    if not server.living:
        return "dead"
    try:
        Administration(KafkaSettings(bootstrap_servers=server.address)).cluster(timeout_s=3)
    except UnreachableError:
        return "not answering"
    return "ready" if server.living == len(server.processes) else "degraded"
