"""Before a first start: could the group's consumers work at all?"""

from typing import Any

from penstock.deployment import DeploymentBackend, DeploymentError, DeploymentTemplate
from penstock.errors import PenstockError, SettingsError


def require_that_it_can_work(
    deployment: DeploymentBackend, template: DeploymentTemplate, log: Any
) -> None:
    """Raise if the consumers could not work. A group that has consumers already is led anyway."""
    try:
        if deployment.list_consumers():
            return
        found = deployment.try_out(template)
    except DeploymentError as error:
        log.warning("deployment_not_tried", why=str(error))
        return
    if found.refusal:
        kind = SettingsError if found.exit_code == SettingsError.exit_code else PenstockError
        raise kind(f"The group was not started: {found.refusal}")
    log.info("deployment_tried", version=template.version, refusal="", note=found.note)
