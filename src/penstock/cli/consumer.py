"""`penstock consumer`: one consumer of the group."""

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
from penstock.processes.owner import end_with, owner_from_text
from penstock.processes.small_memory import keep_memory_small

CONSUMER_ID_MAX = 100_000


def consumer(
    consumer_id: Annotated[
        int | None,
        typer.Option(
            "--id",
            min=1,
            metavar="N",
            help="Which consumer this is: partition N of the control topics is its mailbox. "
            "Default: $PENSTOCK_CONSUMER_ID, which the downward API sets on Kubernetes.",
        ),
    ] = None,
    state_directory: Annotated[
        Path | None,
        typer.Option(
            "--state-dir",
            metavar="DIR",
            help="Its own directory. Default: `consumer-N` below consumer.state_root.",
        ),
    ] = None,
    deployment_version: Annotated[
        int | None,
        typer.Option(min=0, help="Reported to the controller, so that a roll-out sees who is new."),
    ] = None,
    ends_with: Annotated[
        str | None,
        typer.Option(hidden=True, help="A process (PID:TICKS) that this one does not outlive."),
    ] = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    health_port: HealthPort = None,
) -> None:
    """Carry partitions into the lake, as the controller commands, until told to end.

    It joins no Kafka group and picks nothing by itself: commands and questions come through its
    mailbox. SIGTERM or Ctrl-C ends it in order: the running batch is finished or dropped whole.

    Examples:
    `penstock consumer --id 1`

    `penstock consumer --id 2 --set spark.master=sc://127.0.0.1:15002`

    """
    keep_memory_small()
    # Late, because these bring Spark along and `penstock --help` should not wait for it.
    from penstock.consumer.process import ConsumerProcess, GraceExceededError  # noqa: PLC0415

    number = consumer_id if consumer_id is not None else _id_from_environment()
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if ends_with is not None:
        end_with(owner_from_text(ends_with))
    patience_s = max(60.0, 5 * loaded.consumer.report_period)
    try:
        with health_answers(health_port, alive_within_s=patience_s) as health:
            ConsumerProcess(
                loaded,
                number,
                state_directory=state_directory,
                deployment_version=deployment_version,
                health=health,
            ).run()
    except GraceExceededError as error:
        say_error(error)
        sys.stderr.flush()
        # A call into Spark hangs; waiting for it is what was just given up.
        os._exit(error.exit_code)
    # All of ours is closed and durable. Spark's client may still wait, at the interpreter's end,
    # for a server that went away long ago: an orderly end does not wait with it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _id_from_environment() -> int:
    """Its identity on Kubernetes: a consumer that guessed would read another one's mail."""
    variable = "PENSTOCK_CONSUMER_ID"
    text = os.environ.get(variable)
    if text is None:
        raise SettingsError(
            "Which consumer is this? There is no --id and no PENSTOCK_CONSUMER_ID.",
            remedy="Give --id N. On Kubernetes the pod's template sets the variable from the label "
            "penstock.io/consumer.",
        )
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(CONSUMER_ID_MAX))
    if not is_number or not 1 <= int(text) <= CONSUMER_ID_MAX:
        raise SettingsError(
            f"{variable} is {text[:40]!r}, which is no consumer's number (1 to {CONSUMER_ID_MAX}).",
            remedy="On Kubernetes it comes from the pod's label penstock.io/consumer.",
        )
    return int(text)
