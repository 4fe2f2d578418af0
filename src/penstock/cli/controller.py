"""`penstock controller`: the process that leads the group."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.controller.process import ControllerProcess
from penstock.deployment import DeploymentTemplate, LocalProcesses
from penstock.deployment.local_processes import LaunchPlan
from penstock.model import ConsumerId
from penstock.processes.owner import end_with, owner_from_text
from penstock.settings import Settings


def controller(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    ends_with: Annotated[
        str | None,
        typer.Option(hidden=True, help="A process (PID:TICKS) that the group does not outlive."),
    ] = None,
) -> None:
    """Lead the group: watch the speeds, plan, and move partitions between consumers.

    Consumers are local processes below `controller.directory`. They stay when the controller ends
    and are found again by the next one. Only one controller leads: a newer one fences the older at
    the broker, which then ends with exit code 8.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if ends_with is not None:
        end_with(owner_from_text(ends_with))
    given = settings_arguments(settings, overrides, bootstrap_server)
    ControllerProcess(loaded, local_deployment(loaded, given, ends_with)).run()


def settings_arguments(
    settings: Path | None, overrides: Sequence[str] | None, bootstrap_server: str | None
) -> list[str]:
    """The same settings for a child of ours: file and flags; the environment it has anyway."""
    given = ["--settings", str(settings.absolute())] if settings is not None else []
    for text in overrides or []:
        given += ["--set", text]
    if bootstrap_server is not None:
        given += ["--bootstrap-server", bootstrap_server]
    return given


def local_deployment(
    settings: Settings, given: Sequence[str], ends_with: str | None
) -> LocalProcesses:
    def launched(
        consumer: ConsumerId, template: DeploymentTemplate, state_directory: Path
    ) -> LaunchPlan:
        command = [sys.executable, "-m", "penstock", "consumer", "--id", str(consumer)]
        command += ["--state-dir", str(state_directory.absolute())]
        command += ["--deployment-version", str(template.version)]
        if ends_with is not None:
            command += ["--ends-with", ends_with]
        return LaunchPlan(
            [*command, *given, *_template_arguments(settings, template)],
            {**os.environ, **template.environment},
        )

    return LocalProcesses(
        Path(settings.controller.directory).absolute(),
        settings.lake.group,
        launched,
        grace_s=settings.controller.consumer_grace,
    )


def _template_arguments(settings: Settings, template: DeploymentTemplate) -> list[str]:
    """What a roll-out changed, as flags: they win over the file and the environment."""
    given = []
    if template.spark_settings:
        options = {**settings.spark.options, **template.spark_settings}
        given += ["--set", f"spark.options={json.dumps(options)}"]
    if template.transformations:
        tables = {name: one.model_dump() for name, one in settings.lake.tables.items()}
        for topic, function in template.transformations.items():
            tables[topic] = {**tables.get(topic, {}), "transformation": function}
        given += ["--set", f"lake.tables={json.dumps(tables)}"]
    return given
