"""`penstock broker`: a real Kafka on this machine, for trying things out."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.named_servers import Name, NamedServers
from penstock.errors import UnreachableError
from penstock.jars import JarSet
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import BrokerPlan, EmbeddedKafka
from penstock.processes import STOP_GRACE_S, RunningServer
from penstock.settings.sections import KafkaSettings

app = typer.Typer(
    help="A real Apache Kafka on this machine, for trying things out and for tests.",
    no_args_is_help=True,
)


def _state(server: RunningServer) -> str:
    try:
        Administration(KafkaSettings(bootstrap_servers=server.address)).cluster(timeout_s=3)
    except UnreachableError:
        return "not answering"
    return "ready" if server.living == len(server.processes) else "degraded"


SERVERS = NamedServers("broker", "broker", STOP_GRACE_S, _state)


@app.command()
def start(
    brokers: Annotated[int, typer.Option(min=1, max=9, help="How many brokers.")] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where to keep its data. Default: a temporary directory.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="The port to listen on. Default: any free port."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    heap: Annotated[int, typer.Option(min=128, help="Memory for each broker, in MiB.")] = 512,
    name: Name = "default",
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run until Ctrl-C or SIGTERM.")
    ] = False,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Start a broker and print its address.

    It runs until `penstock broker stop`, which also removes a temporary data directory.

    Example: `export PENSTOCK_KAFKA__BOOTSTRAP_SERVERS=$(penstock broker start)`
    """
    SERVERS.refuse_twice(name)
    fetch_with_progress([JarSet.BROKER])
    kafka = EmbeddedKafka(
        BrokerPlan(brokers=brokers, host=host, heap_mib=heap),
        data_directory=data_dir,
        port=port,
        detached=not foreground,
        on_progress=say,
    )
    kafka.start()
    server = RunningServer(
        name=name,
        address=kafka.bootstrap_servers,
        processes=tuple(node.process for node in kafka.nodes.values()),
        log_files=tuple(str(node.log.file) for node in kafka.nodes.values()),
        data_directory=str(kafka.directory),
        is_temporary=kafka.is_temporary,
    )
    if foreground:
        SERVERS.stay_with(server, output, kafka.stop)
        return
    SERVERS.remember(server, kafka.stop)
    SERVERS.print_address(server, output)


@app.command()
def stop(name: Name = "default") -> None:
    """Stop a broker that `penstock broker start` started. Stopping twice is no error."""
    SERVERS.stop(name)


@app.command()
def status(output: OutputFormat = OUTPUT_OPTION) -> None:
    """List the brokers that `penstock broker start` started."""
    SERVERS.print_status(output)
