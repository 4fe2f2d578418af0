"""`penstock consumer`: one consumer of the group."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import say_error
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.errors import UsageError
from penstock.processes.owner import end_with, owner_from_text


def consumer(
    consumer_id: Annotated[
        int | None,
        typer.Option(
            "--id",
            min=1,
            metavar="N",
            help="Which consumer this is: partition N of the control topics is its mailbox. "
            "Default: the environment variable PENSTOCK_CONSUMER_ID.",
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
) -> None:
    """Carry partitions into the lake, as the controller commands, until told to end.

    It joins no Kafka group and picks nothing by itself: commands and questions come through its
    mailbox. SIGTERM or Ctrl-C ends it in order: the running batch is finished or dropped whole.

    Examples:
    `penstock consumer --id 1`

    `penstock consumer --id 2 --set spark.master=sc://127.0.0.1:15002`

    """
    # Late, because these bring Spark along and `penstock --help` should not wait for it.
    from penstock.consumer.process import ConsumerProcess, GraceExceededError  # noqa: PLC0415

    number = consumer_id if consumer_id is not None else _id_from_environment()
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if ends_with is not None:
        end_with(owner_from_text(ends_with))
    process = ConsumerProcess(
        loaded,
        number,
        state_directory=state_directory,
        deployment_version=deployment_version,
    )
    try:
        process.run()
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
    text = os.environ.get("PENSTOCK_CONSUMER_ID", "")
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(
            "Which consumer is this?", remedy="Give --id N, or set PENSTOCK_CONSUMER_ID."
        )
    return int(text)
