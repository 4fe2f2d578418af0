"""Builds the Kubernetes objects as plain values from settings and template. Pure.

Each consumer has one Deployment with one replica and one volume claim. The strategy is Recreate, so
two pods of one consumer never run side by side. The pod reads its consumer id from its own label
through the downward API. It has no rights, no token, no capabilities and a read-only root file
system.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.deployment.interface import DeploymentTemplate, template_of
from penstock.deployment.kubernetes.core.names import (
    CONSUMER_LABEL,
    GROUP_LABEL,
    NOT_PRUNED,
    TEMPLATE_ANNOTATION,
    VERSION_ANNOTATION,
    all_labels,
    object_name,
)
from penstock.deployment.kubernetes.core.pod_template import CONTAINER, merged
from penstock.model import ConsumerId
from penstock.model.json_text import read_json
from penstock.settings.sections import KubernetesSettings

STATE_PATH = "/var/lib/penstock/state"
SETTINGS_PATH = "/etc/penstock"
HEALTH_PORT = 8080
# Any number but 0 (root). The pod template can set another.
USER = 10001

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller's own Deployment."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodPlan:
    """What all consumers of a group share."""

    group: str
    settings: KubernetesSettings
    # Further arguments of `penstock consumer`.
    arguments: Sequence[str] = ()
    pod_template: Mapping[str, Any] = field(default_factory=dict)
    owner: Owner | None = None
    # What the settings have of these; a roll-out changes single values of them by flags.
    spark_options: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def deployment_manifest(
    plan: PodPlan,
    consumer: ConsumerId,
    template: DeploymentTemplate,
) -> Manifest:
    labels = all_labels(plan.group, consumer)
    annotations = {
        VERSION_ANNOTATION: str(template.version),
        TEMPLATE_ANNOTATION: template_as_text(template),
        **NOT_PRUNED,
    }
    metadata: Manifest = {
        "name": object_name(plan.group, consumer),
        "labels": labels,
        "annotations": annotations,
    }
    if plan.owner is not None:
        metadata["ownerReferences"] = [owner_reference(plan.owner)]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 1,
            "selector": {
                "matchLabels": {name: labels[name] for name in (GROUP_LABEL, CONSUMER_LABEL)}
            },
            "template": _pod(plan, consumer, template),
        },
    }


def claim_manifest(plan: PodPlan, consumer: ConsumerId) -> Manifest:
    settings = plan.settings
    metadata: Manifest = {
        "name": object_name(plan.group, consumer),
        "labels": all_labels(plan.group, consumer),
        "annotations": dict(NOT_PRUNED),
    }
    if settings.remove_volumes and plan.owner is not None:
        metadata["ownerReferences"] = [owner_reference(plan.owner)]
    spec: Manifest = {
        "accessModes": [settings.volume_access_mode],
        "resources": {"requests": {"storage": settings.volume_size}},
    }
    if settings.volume_storage_class:
        spec["storageClassName"] = settings.volume_storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
    }


def owner_reference(owner: Owner) -> Manifest:
    # Blocking the owner's deletion would need a further right.
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": owner.name,
        "uid": owner.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def template_as_text(template: DeploymentTemplate) -> str:
    """The template as JSON, so that a restarted controller can recreate the Deployment."""
    return json.dumps(asdict(template), sort_keys=True)


def template_from_text(text: str) -> DeploymentTemplate | None:
    """Reads what `template_as_text` wrote; None when it is not valid any more."""
    try:
        return template_of(read_json(text))
    except ValueError:
        return None


def _pod(
    plan: PodPlan,
    consumer: ConsumerId,
    template: DeploymentTemplate,
) -> Manifest:
    settings = plan.settings
    ours = {
        "metadata": {
            "labels": all_labels(plan.group, consumer),
            "annotations": {VERSION_ANNOTATION: str(template.version)},
        },
        "spec": {
            "serviceAccountName": settings.consumer_service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": round(settings.grace_period),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(plan, template)],
            "volumes": _volumes(plan, consumer),
        },
    }
    merged_pod = merged(ours, _parts(plan.pod_template))
    return _with_required_fields(merged_pod, ours)  # type: ignore[no-any-return] # a mapping of both


def _parts(pod_template: Mapping[str, Any]) -> Manifest:
    return {part: pod_template[part] for part in ("metadata", "spec") if part in pod_template}


def _with_required_fields(pod: Any, ours: Any) -> Any:
    """Set the labels and the consumer id, which the user's template cannot change."""
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **ours["metadata"]["labels"]}
    identity = identity_variable()
    for one in pod["spec"]["containers"]:
        if one["name"] == CONTAINER:
            kept = [v for v in one.get("env", []) if v.get("name") != identity["name"]]
            one["env"] = [identity, *kept]
    return pod


def identity_variable() -> Manifest:
    field_path = f"metadata.labels['{CONSUMER_LABEL}']"
    return {
        "name": "PENSTOCK_CONSUMER_ID",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field_path}},
    }


def _container(plan: PodPlan, template: DeploymentTemplate) -> Manifest:
    settings = plan.settings
    command = ["penstock", "consumer", "--state-dir", STATE_PATH]
    command += ["--deployment-version", str(template.version)]
    command += ["--health-port", str(HEALTH_PORT)]
    # A deleted pod is replaced while it still ends, so the new one waits for the state directory.
    command += ["--set", f"consumer.state_wait={settings.grace_period:g}s"]
    mounts: list[Manifest] = [
        {"name": "state", "mountPath": STATE_PATH},
        {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 -- a volume of the pod's own
    ]
    if settings.settings_config_map:
        command += ["--settings", f"{SETTINGS_PATH}/penstock.yaml"]
        mounts.append({"name": "settings", "mountPath": SETTINGS_PATH, "readOnly": True})
    return {
        "name": CONTAINER,
        "image": template.image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": [*command, *plan.arguments],
        "env": [
            {"name": name, "value": template.environment[name]}
            for name in sorted(template.environment)
        ],
        "ports": [{"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"}],
        "startupProbe": _probe("/healthz", period_s=1, failures=60),
        "livenessProbe": _probe("/healthz", period_s=10, failures=6),
        "readinessProbe": _probe("/readyz", period_s=2, failures=3),
        "resources": _resources(settings, template),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _probe(path: str, *, period_s: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": period_s,
        "timeoutSeconds": 2,
        "failureThreshold": failures,
    }


def _resources(settings: KubernetesSettings, template: DeploymentTemplate) -> Manifest:
    """From the settings; figures of a roll-out are both request and limit."""
    cpu, memory = template.cpu_millicores, template.memory_megabytes
    return {
        "requests": {
            "cpu": f"{cpu}m" if cpu else settings.cpu_request,
            "memory": f"{memory}M" if memory else settings.memory_request,
        },
        "limits": {
            "cpu": f"{cpu}m" if cpu else settings.cpu_limit,
            "memory": f"{memory}M" if memory else settings.memory_limit,
        },
    }


def _volumes(plan: PodPlan, consumer: ConsumerId) -> list[Manifest]:
    volumes: list[Manifest] = [
        {
            "name": "state",
            "persistentVolumeClaim": {"claimName": object_name(plan.group, consumer)},
        },
        {"name": "scratch", "emptyDir": {}},
    ]
    if plan.settings.settings_config_map:
        volumes.append(
            {"name": "settings", "configMap": {"name": plan.settings.settings_config_map}}
        )
    return volumes
