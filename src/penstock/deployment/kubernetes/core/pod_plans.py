"""A pod plan that lasts: with its template, over upgrades of the controller. Pure.

An upgraded controller has other settings than the consumers that run. Until each of them is
replaced it may have to be made again, and a roll-out may be rolled back: as it was, with the image,
the resources, the settings map and the pod template of its own version. So each template keeps them
as plain values.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.deployment.interface import DeploymentTemplate
from penstock.deployment.kubernetes.core.manifests import PodPlan
from penstock.deployment.template_arguments import changes_as_flags
from penstock.settings.sections import KubernetesSettings

_SETTINGS_MAP = "settings_config_map"
# What a consumer's pod is made of. Its volume is not: it outlives the pods.
_OF_PODS = (
    "image",
    "image_pull_policy",
    "consumer_service_account",
    _SETTINGS_MAP,
    "grace_period",
    "cpu_request",
    "cpu_limit",
    "memory_request",
    "memory_limit",
)


def plan_as_values(plan: PodPlan) -> dict[str, Any]:
    """What a template keeps of a plan; JSON values only."""
    settings = plan.settings.model_dump(mode="json")
    return {
        "settings": {name: settings[name] for name in _OF_PODS},
        "arguments": list(plan.arguments),
        "pod_template": dict(plan.pod_template),
        "spark_options": dict(plan.spark_options),
        "tables": dict(plan.tables),
    }


def plan_digest(plan: PodPlan, settings_digest: str) -> str:
    """Changes with what consumers run with, and with nothing else.

    The name of the settings map is left out: it changes with every setting, also with those that
    only the controller reads. `settings_digest` is of the others.
    """
    values = plan_as_values(plan)
    del values["settings"][_SETTINGS_MAP]
    text = json.dumps([values, settings_digest], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan_of(template: DeploymentTemplate, own: PodPlan) -> PodPlan:
    """The plan that the template keeps; this controller's own where it keeps none that is valid."""
    plan = own
    try:
        if template.pod_plan:
            plan = replace(own, **_read(template.pod_plan, own))
    except (ValueError, TypeError, AttributeError):
        # Of a record that anybody may have written, or of a release with other options: a
        # controller that ends here would never lead again.
        plan = own
    flags = changes_as_flags(template, plan.spark_options, plan.tables)
    return replace(plan, arguments=[*plan.arguments, *flags])


def _read(kept: Mapping[str, Any], own: PodPlan) -> dict[str, Any]:
    """What of it this release understands: another release may have written it."""
    given = kept.get("settings", {})
    known = {name: given[name] for name in _OF_PODS if name in given}
    settings = own.settings.model_dump(mode="json") | known
    return {
        "settings": KubernetesSettings.model_validate(settings),
        "arguments": list(kept.get("arguments", own.arguments)),
        "pod_template": kept.get("pod_template", own.pod_template),
        "spark_options": kept.get("spark_options", own.spark_options),
        "tables": kept.get("tables", own.tables),
    }
