"""A real controller whose consumers a test starts itself: it believes that consumer 1 is there.

With `--standby` it waits while another controller leads.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a file, from another folder

from kit.deployment.in_memory import InMemoryDeployment
from penstock.controller.process import ControllerProcess
from penstock.deployment import DeploymentTemplate
from penstock.model import ConsumerId
from penstock.settings import load_settings
from penstock.telemetry.logs import configure_logs

if __name__ == "__main__":
    deployment = InMemoryDeployment()
    deployment.create(ConsumerId(1), DeploymentTemplate())
    is_standby = "--standby" in sys.argv
    settings = load_settings().settings
    configure_logs(settings.log.level, settings.log.format)
    ControllerProcess(settings, deployment, is_standby=is_standby).run()
