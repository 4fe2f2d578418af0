"""Consumers on Kubernetes: one Deployment of one replica, and one volume, for each.

names, manifests, pod_template     what we ask for              pure
status, care, refusals             what the answers mean        pure
credentials, api, watching, events what touches the API server
backend                            the interface, made of these
opening                            from settings to a back-end
"""

from penstock.deployment.kubernetes.backend import KubernetesDeployment
from penstock.deployment.kubernetes.from_settings import kubernetes_deployment

__all__ = ["KubernetesDeployment", "kubernetes_deployment"]
