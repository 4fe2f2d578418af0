"""Starts and ends consumers: one interface, two back-ends, and one contract test for both."""

from penstock.deployment.interface import (
    DeployedConsumer,
    DeploymentBackend,
    DeploymentError,
    DeploymentState,
    DeploymentTemplate,
    Incident,
    StillEndingError,
    TrialOutcome,
    template_of,
)
from penstock.deployment.local_processes import LocalProcesses

__all__ = [
    "DeployedConsumer",
    "DeploymentBackend",
    "DeploymentError",
    "DeploymentState",
    "DeploymentTemplate",
    "Incident",
    "LocalProcesses",
    "StillEndingError",
    "TrialOutcome",
    "template_of",
]
