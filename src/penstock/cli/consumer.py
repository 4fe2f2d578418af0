"""`penstock consumer`: runs one consumer of the group."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import say_error
from penstock.cli.options import (
    BootstrapServer,
    HealthPort,
    Overrides,
    SettingsFile,
    effective_settings,
    health_answers,
)
from penstock.errors import SettingsError
from penstock.metrics import Process
from penstock.model.consumer_id import CONSUMER_ID_MAX
from penstock.processes.owner import end_with, owner_from_text
from penstock.processes.small_memory import keep_memory_small


def consumer(
    consumer_id: Annotated[
        int | None,
        typer.Option(
            "--id",
            min=1,
            metavar="N",
            help="The consumer's number: partition N of the control topics is its mailbox. "
            "Default: $PENSTOCK_CONSUMER_ID, which the downward API sets on Kubernetes.",
        ),
    ] = None,
    state_directory: Annotated[
        Path | None,
        typer.Option(
            "--state-dir",
            metavar="DIR",
            help="Its state directory. Default: `consumer-N` below consumer.state_root.",
        ),
    ] = None,
    deployment_version: Annotated[
        int | None,
        typer.Option(min=0, help="Reported to the controller, which uses it during a roll-out."),
    ] = None,
    ends_with: Annotated[
        str | None,
        typer.Option(hidden=True, help="End when this process (PID:TICKS) ends."),
    ] = None,
    started_file: Annotated[
        Path | None,
        typer.Option(hidden=True, help="Make this file when the start is complete."),
    ] = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    health_port: HealthPort = None,
) -> None:
    """Carry the partitions that the controller assigns into the lake.

    It joins no Kafka group: commands and queries of the controller arrive in its mailbox. On
    SIGTERM or Ctrl-C it shuts down cleanly: the running batch is committed or dropped as a whole.

    Examples:
    `penstock consumer --id 1`

    `penstock consumer --id 2 --set spark.master=sc://127.0.0.1:15002`

    """
    keep_memory_small()
    # After `keep_memory_small`, which must come before deltalake is imported. Spark is slow too.
    from penstock.consumer.process import (  # noqa: PLC0415 -- see above
        ConsumerProcess,
        GraceExceededError,
    )

    number = consumer_id if consumer_id is not None else _id_from_environment()
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if ends_with is not None:
        end_with(owner_from_text(ends_with))
    patience_s = max(60.0, 5 * loaded.consumer.report_period)
    try:
        with health_answers(
            health_port,
            loaded,
            Process.CONSUMER,
            name=f"consumer-{number}",
            alive_within_s=patience_s,
        ) as (health, metrics):
            ConsumerProcess(
                loaded,
                number,
                state_directory=state_directory,
                deployment_version=deployment_version,
                started_file=started_file,
                health=health,
                metrics=metrics,
            ).run()
    except GraceExceededError as error:
        say_error(error)
        sys.stderr.flush()
        # A call into Spark still hangs, and a normal exit would wait for it.
        os._exit(error.exit_code)
    # Everything is closed and durable. A normal exit could hang: Spark's client may wait for a
    # server that is gone.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _id_from_environment() -> int:
    """The consumer id on Kubernetes. There is no default: it would open another's mailbox."""
    variable = "PENSTOCK_CONSUMER_ID"
    text = os.environ.get(variable)
    if text is None:
        raise SettingsError(
            "The consumer has no id: neither --id nor PENSTOCK_CONSUMER_ID is set.",
            remedy="Give --id N. On Kubernetes the pod's template sets the variable from the label "
            "penstock.io/consumer.",
        )
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(CONSUMER_ID_MAX))
    if not is_number or not 1 <= int(text) <= CONSUMER_ID_MAX:
        raise SettingsError(
            f"{variable} is {text[:40]!r}, not a consumer id (1 to {CONSUMER_ID_MAX}).",
            remedy="On Kubernetes it comes from the pod's label penstock.io/consumer.",
        )
    return int(text)
