"""No planted secret is in any object that we would give to the API server.

Who may read a namespace reads Deployments, claims, conditions and Events. A secret stays in its
Secret, which they name.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.canaries import found_in
from penstock.deployment import DeploymentTemplate
from penstock.deployment.kubernetes.core.conditions import condition_of, condition_patch
from penstock.deployment.kubernetes.core.manifests import (
    Owner,
    claim_manifest,
    deployment_manifest,
)
from penstock.deployment.kubernetes.core.pod_plans import plan_of
from penstock.deployment.kubernetes.core.repairs import inspect_consumers
from penstock.deployment.kubernetes.process.events import event_manifest
from penstock.deployment.kubernetes.process.from_settings import pod_plan, pods_of_this_start
from penstock.errors import SettingsError
from penstock.model import ConsumerId
from penstock.settings import LoadedSettings, load_settings
from penstock.settings.tree import secret_options

THREE = ConsumerId(3)
PLANTED = {
    f"PENSTOCK_{'__'.join(path).upper()}": f"canary-of-an-object-{number}"
    for number, path in enumerate(sorted(secret_options()))
}
CLOUD = {"AWS_SECRET_ACCESS_KEY": "canary-of-the-cloud", "AWS_SESSION_TOKEN": "canary-of-a-session"}
LOOKED_FOR = [*PLANTED.values(), *CLOUD.values()]
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedSettings:
    """Every secret comes from the environment, which has those of the cloud too."""
    template = tmp_path / "pod-template.yaml"
    named = {"secretKeyRef": {"name": "kafka", "key": "password"}}
    variables = [{"name": name, "valueFrom": named} for name in (*PLANTED, *CLOUD)]
    pod = {"spec": {"containers": [{"name": "consumer", "env": variables}]}}
    template.write_text(yaml.safe_dump(pod), encoding="utf-8")
    for name, canary in {**PLANTED, **CLOUD}.items():
        monkeypatch.setenv(name, canary)
    flags = {
        "kubernetes.image": "penstock:1",
        "kubernetes.pod_template": str(template),
        "lake.root": "s3://lake",
        "spark.options": '{"spark.executor.cores": "2"}',
    }
    return load_settings(flags=flags, environment={**PLANTED, **CLOUD}, cores=2)


def _troubled(deployment: Any, words: str) -> tuple[Any, Any]:
    """The Deployment as the API server has it, and its pod, which has ended with these words."""
    metadata = {**deployment["metadata"], "uid": "u1", "namespace": "lakes"}
    end = {"terminated": {"reason": "Error", "exitCode": 3, "message": words}}
    pod = {
        "metadata": {"name": "p", "uid": "p1", "labels": metadata["labels"]},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {
                    "name": "consumer",
                    "restartCount": 4,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": words}},
                    "lastState": end,
                }
            ],
        },
    }
    return {**deployment, "metadata": metadata, "status": {}}, pod


def _objects(loaded: LoadedSettings, flags: Sequence[str] = ()) -> list[Any]:
    """All that the controller would write of one consumer, while it runs and when it fails."""
    own = pod_plan(loaded, flags)
    values, digest = pods_of_this_start(loaded, flags)
    template = DeploymentTemplate(version=2, pod_plan=values)
    plan = replace(plan_of(template, own), owner=Owner("penstock-controller", "u0"))
    made = deployment_manifest(plan, THREE, template)
    deployment, pod = _troubled(made, "exit code 3")
    found = inspect_consumers([THREE], {THREE: deployment}, {THREE: [pod]}, {}, AT.timestamp())
    conditions = [
        condition_patch(deployment, condition_of(deployment, one.trouble), AT)
        for one in found.observed.values()
    ]
    events = [
        event_manifest(
            deployment, one.reason, one.explanation, is_warning=True, at=AT, instance="c"
        )
        for one in found.incidents
    ]
    assert conditions
    assert conditions[0]["status"]["conditions"][0]["status"] == "False"
    return [made, claim_manifest(plan, THREE), values, digest, *conditions, *events]


@pytest.mark.parametrize("settings_map", ["", "penstock-settings"])
def test_no_object_has_a_secret(loaded: LoadedSettings, settings_map: str) -> None:
    """Settings as flags or in a map; in Deployment, claim, kept template, condition and Event."""
    kubernetes = loaded.settings.kubernetes.model_copy(update={"settings_config_map": settings_map})
    settings = loaded.settings.model_copy(update={"kubernetes": kubernetes})
    changed = replace(loaded, settings=settings)
    text = json.dumps(_objects(changed, ["--set", "log.level=debug"]))
    assert "s3://lake" in text or settings_map, "what is no secret is there"
    assert "secretKeyRef" in text
    assert found_in(text, LOOKED_FOR) == []


@pytest.mark.parametrize("option", [".".join(path) for path in sorted(secret_options())])
def test_a_secret_is_no_flag_that_could_be_copied(option: str) -> None:
    """The controller's own flags become arguments of every pod: there it is refused."""
    with pytest.raises(SettingsError) as refused:
        load_settings(flags={option: "canary-of-a-flag"}, environment={}, cores=2)
    assert "canary-of-a-flag" not in f"{refused.value} {refused.value.remedy}"
