"""Consumers on Kubernetes: each has one Deployment with one replica, and one volume.

core/names, manifests, pod_template      the objects to request          pure
core/status, repairs, conditions         what the cluster's objects mean pure
core/refusals                            what the API's answers mean     pure
credentials, api, watched_objects        access to the API server
events, condition_writer                 information for `kubectl describe`
backend                                  implements the deployment interface
from_settings                            builds the back-end
"""

from penstock.deployment.kubernetes.backend import KubernetesDeployment
from penstock.deployment.kubernetes.from_settings import kubernetes_deployment

__all__ = ["KubernetesDeployment", "kubernetes_deployment"]
