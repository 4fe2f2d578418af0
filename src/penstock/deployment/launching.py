"""The command that starts a consumer of this group on this machine.

The child gets the copy of the settings that its template names, the same flags (never secrets) and
the same environment. Changes of a roll-out follow as further flags, which win.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.deployment import DeploymentTemplate, LocalProcesses, TrialOutcome
from penstock.deployment.local_processes import STARTED_NAME, LaunchPlan
from penstock.deployment.template_arguments import changes_as_flags
from penstock.deployment.trial_run import run_trial
from penstock.model import ConsumerId
from penstock.settings import Settings


def local_deployment(
    settings: Settings,
    flags: Sequence[str],
    ends_with: str | None,
    settings_of: Callable[[Path], Settings] | None = None,
) -> LocalProcesses:
    """`settings_of` reads the copy of the settings that a template names, with the same flags."""

    def launched(
        consumer: ConsumerId, template: DeploymentTemplate, state_directory: Path
    ) -> LaunchPlan:
        command = [sys.executable, "-m", "penstock", "consumer", "--id", str(consumer)]
        command += ["--state-dir", str(state_directory.absolute())]
        command += ["--deployment-version", str(template.version)]
        command += ["--started-file", str(state_directory.absolute().parent / STARTED_NAME)]
        if ends_with is not None:
            command += ["--ends-with", ends_with]
        return LaunchPlan(
            [*command, *settings_flags(template)], {**os.environ, **template.environment}
        )

    def tried(template: DeploymentTemplate) -> TrialOutcome:
        return run_trial(
            settings_flags(template),
            {**os.environ, **template.environment},
            timeout_s=settings.controller.trial_timeout,
        )

    def settings_flags(template: DeploymentTemplate) -> list[str]:
        file = None if template.settings_file is None else Path(template.settings_file)
        given, theirs = list(flags), settings
        # A copy that another machine made is not here; then the one among the flags counts.
        if file is not None and settings_of is not None and file.is_file():
            given, theirs = [*flags, "--settings", str(file)], settings_of(file)
        return [*given, *template_arguments(theirs, template)]

    return LocalProcesses(
        Path(settings.controller.directory).absolute(),
        settings.lake.group,
        launched,
        trial=tried,
        grace_s=settings.controller.consumer_grace,
        starts_at_once_max=settings.controller.starts_at_once_max or len(os.sched_getaffinity(0)),
        start_counts_s=settings.controller.start_counts_for,
        start_counts_s_max=settings.controller.creation_timeout,
        start_slack=settings.controller.creation_slack,
        owner=ends_with or "",
    )


def template_arguments(settings: Settings, template: DeploymentTemplate) -> list[str]:
    """The changes of a roll-out as flags, which win over the file and the environment."""
    tables = {name: one.model_dump() for name, one in settings.lake.tables.items()}
    return changes_as_flags(template, settings.spark.options, tables)
