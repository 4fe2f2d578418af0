"""Starts and ends consumers: one interface, three back-ends, and one contract test for all."""

from penstock.deployment.in_memory import InMemoryDeployment
from penstock.deployment.interface import (
    DeployedConsumer,
    DeploymentBackend,
    DeploymentError,
    DeploymentState,
    DeploymentTemplate,
    Incident,
    StillEndingError,
)
from penstock.deployment.local_processes import LocalProcesses

__all__ = [
    "DeployedConsumer",
    "DeploymentBackend",
    "DeploymentError",
    "DeploymentState",
    "DeploymentTemplate",
    "InMemoryDeployment",
    "Incident",
    "LocalProcesses",
    "StillEndingError",
]
