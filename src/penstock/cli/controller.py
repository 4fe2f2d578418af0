"""`penstock controller`: the process that leads the group."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import (
    BootstrapServer,
    Calibrated,
    HealthPort,
    Overrides,
    SettingsFile,
    calibrated_topics,
    effective_settings,
    health_answers,
)
from penstock.cli.settings_copies import SettingsCopies, origin_texts
from penstock.controller.process import ControllerProcess
from penstock.controller.process.settings_in_force import GroupSettings
from penstock.deployment import DeploymentBackend
from penstock.deployment.launching import local_deployment
from penstock.metrics import Process
from penstock.processes.owner import end_with, owner_from_text


def controller(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    health_port: HealthPort = None,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            help="Wait while another controller leads; take over when its heartbeats stop for "
            "`controller.takeover_after`.",
        ),
    ] = False,
    calibrated: Calibrated = None,
    ends_with: Annotated[
        str | None,
        typer.Option(hidden=True, help="End with this process (PID:TICKS), consumers included."),
    ] = None,
) -> None:
    """Lead the group: watch write speeds, plan, and move partitions between consumers.

    Consumers are local processes below `controller.directory`, or Deployments of a Kubernetes
    cluster (`controller.deployment=kubernetes`). They keep running when the controller ends, and
    the next controller finds them. Only one controller leads: one that is started elsewhere is
    refused (exit code 8) with who leads, unless that one is silent. Then the broker fences the
    silent one. What requests changed (settings, pauses, deployments) is kept in Kafka, so a standby
    on another machine goes on with it.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server)
    if ends_with is not None:
        end_with(owner_from_text(ends_with))
    with health_answers(health_port, loaded.settings, Process.CONTROLLER) as (health, metrics):
        deployment: DeploymentBackend
        flags = settings_arguments(None, overrides, bootstrap_server)
        started_with = GroupSettings(loaded.settings, origin_texts(loaded))
        read_again: Callable[[], GroupSettings] | None = None
        if loaded.settings.controller.deployment == "kubernetes":
            # The Kubernetes client is slow to import, and comes with an extra of its own.
            from penstock.deployment.kubernetes import (  # noqa: PLC0415 -- see above
                kubernetes_deployment,
                pods_of_this_start,
            )

            deployment = kubernetes_deployment(loaded, flags)
            pod_plan, digest = pods_of_this_start(loaded, flags)
            started_with = replace(
                started_with,
                consumers_file=loaded.settings.kubernetes.settings_config_map or None,
                consumers_digest=digest,
                pod_plan=pod_plan,
            )
            # A pod's settings never change: with others it is another pod.
            read_again = partial(_same, started_with)
        else:
            copies = SettingsCopies(loaded, overrides, bootstrap_server, outlive=ends_with is None)
            started_with, read_again = copies.started_with(), copies.read_again
            own = ["--settings", str(started_with.consumers_file), *flags]
            deployment = local_deployment(
                loaded.settings, own, ends_with, settings_of=copies.settings_of
            )
        # `penstock up`, which has this controller end with it, has tried everything itself. A
        # standby must lead soon.
        ControllerProcess(
            loaded.settings,
            deployment,
            health=health,
            metrics=metrics,
            is_standby=standby,
            tries_first=ends_with is None and not standby,
            started_with=started_with,
            read_again=read_again,
            calibrated=calibrated_topics(calibrated),
        ).run()


def _same(started_with: GroupSettings) -> GroupSettings:
    return started_with


def settings_arguments(
    settings: Path | None, overrides: Sequence[str] | None, bootstrap_server: str | None
) -> list[str]:
    """The settings as arguments for a child process, which inherits the environment."""
    given = ["--settings", str(settings.absolute())] if settings is not None else []
    for text in overrides or []:
        given += ["--set", text]
    if bootstrap_server is not None:
        given += ["--bootstrap-server", bootstrap_server]
    return given
