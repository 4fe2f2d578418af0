"""How requests change the way consumers are deployed, and how long such a change holds.

The later one wins, as with other settings: a transformation that a request brought holds while the
settings file names the same one as at that time.
"""

from collections.abc import Mapping
from dataclasses import replace

from penstock.deployment import DeploymentTemplate
from penstock.messages import UpdateDeployments
from penstock.settings import Settings

_IMAGE = "kubernetes.image"


def updated(
    template: DeploymentTemplate, version: int, request: UpdateDeployments, chosen: Settings
) -> DeploymentTemplate:
    """The template as a request changes it; what the request does not name stays."""
    if request.drop_changes:
        template = DeploymentTemplate(
            settings_file=template.settings_file,
            settings_digest=template.settings_digest,
            pod_plan=template.pod_plan,
            failed_digest=template.failed_digest,
        )
    resources = request.resources
    tuning = {str(name): value for name, value in request.spark_settings.items()}
    named = [
        *(_transformation(topic) for topic in request.transformations),
        *(_tuning(name) for name in tuning),
        *([_IMAGE] if request.image else []),
    ]
    now = _in_settings(chosen, named)
    return replace(
        template,
        version=version,
        environment={**template.environment, **request.environment},
        transformations={**template.transformations, **request.transformations},
        spark_settings={**template.spark_settings, **tuning},
        instead_of={**template.instead_of, **now},
        image=request.image or template.image,
        cpu_millicores=(resources and resources.cpu_millicores) or template.cpu_millicores,
        memory_megabytes=(resources and resources.memory_megabytes) or template.memory_megabytes,
    )


def without_overtaken(
    template: DeploymentTemplate, chosen: Settings
) -> tuple[DeploymentTemplate, list[str]]:
    """Without what the settings have changed since, and a line about each."""
    now = _in_settings(chosen, template.instead_of)
    gone = [name for name, before in template.instead_of.items() if now[name] != before]
    told = [
        f"{name}: the settings were changed from {template.instead_of[name] or 'none'} to "
        f"{now[name] or 'none'} since it was rolled out, so the settings count"
        for name in gone
    ]
    kept = replace(
        template,
        image=None if _IMAGE in gone else template.image,
        transformations={
            topic: function
            for topic, function in template.transformations.items()
            if _transformation(topic) not in gone
        },
        spark_settings={
            name: value
            for name, value in template.spark_settings.items()
            if _tuning(name) not in gone
        },
        instead_of={n: before for n, before in template.instead_of.items() if n not in gone},
    )
    return kept, told


def changes_of(template: DeploymentTemplate) -> dict[str, str]:
    """What requests have changed, by name, for people."""
    transformations = {_transformation(t): f for t, f in template.transformations.items()}
    image = {} if template.image is None else {_IMAGE: template.image}
    tunings = {_tuning(n): value for n, value in template.spark_settings.items()}
    return transformations | tunings | image


def _transformation(topic: str) -> str:
    return f"lake.tables.{topic}.transformation"


def _tuning(name: str) -> str:
    return f"spark.options.{name}"


def _in_settings(chosen: Settings, names: Mapping[str, str] | list[str]) -> dict[str, str]:
    tables, options = chosen.lake.tables, chosen.spark.options
    all_of_them = {_transformation(topic): one.transformation for topic, one in tables.items()}
    all_of_them |= {_tuning(name): value for name, value in options.items()}
    all_of_them[_IMAGE] = chosen.kubernetes.image
    return {name: all_of_them.get(name) or "" for name in names}
