"""Consumers on Kubernetes: each has one Deployment with one replica, and one volume.

core/names, manifests, pod_template         the objects to request          pure
core/pod_plans                              the same for each version       pure
core/status, repairs, conditions            what the cluster's objects mean pure
core/refusals                               what the API's answers mean     pure
process/credentials, api, watched_objects   access to the API server
process/events, condition_writer            information for `kubectl describe`
process/backend                             implements the deployment interface
process/from_settings                       builds the back-end
"""

from penstock.deployment.kubernetes.process.backend import KubernetesDeployment
from penstock.deployment.kubernetes.process.from_settings import (
    kubernetes_deployment,
    pods_of_this_start,
)

__all__ = ["KubernetesDeployment", "kubernetes_deployment", "pods_of_this_start"]
