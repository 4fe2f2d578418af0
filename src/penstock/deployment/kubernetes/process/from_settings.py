"""Builds the Kubernetes back-end from the settings, and reports wrong settings at once.

Consumers get the controller's settings from the ConfigMap that both mount, or as flags if none is
set. The controller's own flags come last and win. Secrets are never passed as flags; the pod
template provides them.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.deployment.kubernetes.core.manifests import Owner, PodPlan
from penstock.deployment.kubernetes.core.pod_plans import plan_as_values, plan_digest
from penstock.deployment.kubernetes.core.pod_template import invalid_reason, secret_in_clear
from penstock.deployment.kubernetes.core.refusals import Right
from penstock.deployment.kubernetes.process.api import DEPLOYMENTS, Api
from penstock.deployment.kubernetes.process.backend import KubernetesDeployment
from penstock.deployment.kubernetes.process.credentials import Access, access
from penstock.errors import SettingsError
from penstock.settings import LoadedSettings, Settings
from penstock.settings.snapshot import consumers_digest
from penstock.settings.tree import known_options, secret_options
from penstock.settings.yaml_text import read_yaml

# Sections that only the controller and the monitor read.
_NOT_FOR_CONSUMERS = frozenset({"kubernetes", "controller", "packing", "monitor"})
# Without these a consumer would check its own options against defaults, and refuse them.
_CHECKED_BY_CONSUMERS = frozenset({("controller", "deployment"), ("controller", "silence")})
TEMPLATE_BYTES_MAX = 1024 * 1024


def kubernetes_deployment(
    loaded: LoadedSettings,
    flags: Sequence[str] = (),
    *,
    allowed: Access | None = None,
    on_call: Callable[[Right], None] = lambda _: None,
) -> KubernetesDeployment:
    """Connect and watch. Raises SettingsError, MissingRightError or ApiUnavailableError."""
    settings = loaded.settings
    require_usable(settings)
    api = Api(allowed or access(settings.kubernetes), on_call=on_call)
    plan = replace(pod_plan(loaded, flags), owner=_owner(api, settings.kubernetes.owner))
    instance = os.environ.get("HOSTNAME", "")
    return KubernetesDeployment(api, plan, instance=instance).start()


def pod_plan(loaded: LoadedSettings, flags: Sequence[str] = ()) -> PodPlan:
    """What the settings make of a consumer's pod; without an owner, which only the API knows."""
    settings = loaded.settings
    return PodPlan(
        group=settings.lake.group,
        settings=settings.kubernetes,
        arguments=consumer_arguments(loaded, flags),
        pod_template=read_pod_template(settings.kubernetes.pod_template),
        spark_options=settings.spark.options,
        tables={name: one.model_dump(mode="json") for name, one in settings.lake.tables.items()},
    )


def pods_of_this_start(
    loaded: LoadedSettings, flags: Sequence[str] = ()
) -> tuple[dict[str, Any], str]:
    """What consumers of this start are made of, and its digest. Passwords are in neither."""
    plan = pod_plan(loaded, flags)
    settings_digest = consumers_digest(loaded, has_secrets=False)
    return plan_as_values(plan), plan_digest(plan, settings_digest)


def require_usable(settings: Settings) -> None:
    kubernetes = settings.kubernetes
    if not kubernetes.image:
        raise SettingsError(
            "kubernetes.image is not set, so consumers have no image to run.",
            remedy="Set kubernetes.image to the image built from `deploy/Dockerfile`.",
        )
    if kubernetes.grace_period <= settings.consumer.grace:
        raise SettingsError(
            f"kubernetes.grace_period ({kubernetes.grace_period:g}s) is not longer than "
            f"consumer.grace ({settings.consumer.grace:g}s): pods would be killed during a batch.",
            remedy="Raise kubernetes.grace_period, or lower consumer.grace.",
        )


def consumer_arguments(loaded: LoadedSettings, flags: Sequence[str]) -> list[str]:
    """The consumers' settings as flags; with a ConfigMap only the controller's own flags."""
    arguments: list[str] = []
    if not loaded.settings.kubernetes.settings_config_map:
        shown = loaded.settings.model_dump(mode="json")
        for path in sorted(set(loaded.origin) & set(known_options())):
            is_theirs = path[0] not in _NOT_FOR_CONSUMERS or path in _CHECKED_BY_CONSUMERS
            if is_theirs and path not in secret_options():
                arguments += ["--set", f"{'.'.join(path)}={_flag_text(shown, path)}"]
    return [*arguments, *flags]


def _flag_text(shown: Mapping[str, Any], path: Sequence[str]) -> str:
    value: Any = shown
    for name in path:
        value = value[name]
    return value if isinstance(value, str) else json.dumps(value)


def read_pod_template(named: str) -> Mapping[str, Any]:
    """The user's pod template; empty when none is set."""
    if not named:
        return {}
    try:
        with Path(named).open(encoding="utf-8") as file:
            text = file.read(TEMPLATE_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"kubernetes.pod_template: {named}: {reason}.") from None
    content = read_yaml(text, f"kubernetes.pod_template: {named}")
    content = {} if content is None else content
    wrong = invalid_reason(content)
    if wrong is not None:
        raise SettingsError(f"kubernetes.pod_template: {named}: {wrong}.")
    in_clear = secret_in_clear(content)
    if in_clear is not None:
        raise SettingsError(
            f"kubernetes.pod_template: {named}: {in_clear} has a secret as its value, "
            "and what stands here is copied into Deployments and the state topic.",
            remedy="Name a Secret in its place: valueFrom.secretKeyRef, or envFrom. In the chart "
            "these are consumer.extraEnv and consumer.extraEnvFrom.",
        )
    found: Mapping[str, Any] = content
    return found


def _owner(api: Api, name: str) -> Owner | None:
    if not name:
        return None
    found = api.read(DEPLOYMENTS, name)
    if found is None:
        raise SettingsError(
            f"kubernetes.owner: there is no Deployment {name} in namespace {api.namespace}.",
            remedy="Name the controller's own Deployment, or leave it empty.",
        )
    return Owner(name, found["metadata"]["uid"])
