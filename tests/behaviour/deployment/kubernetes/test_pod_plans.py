"""What pods of one version are made of stays the same, whatever a later controller would make."""

import json
from dataclasses import replace
from typing import Any

import pytest

from penstock.deployment import DeploymentTemplate
from penstock.deployment.kubernetes.core.manifests import (
    Owner,
    PodPlan,
    claim_manifest,
    deployment_manifest,
    template_as_text,
    template_from_text,
)
from penstock.deployment.kubernetes.core.pod_plans import plan_as_values, plan_digest, plan_of
from penstock.model import ConsumerId
from penstock.settings.sections import KubernetesSettings

ONE = ConsumerId(1)


def plan(*, map_name: str = "penstock-1", **changes: Any) -> PodPlan:
    given = {"image": "penstock:1", "settings_config_map": map_name, "grace_period": "90s"}
    settings = KubernetesSettings.model_validate(given | changes)
    pod_template = {"spec": {"nodeSelector": {"disk": settings.image}}}
    return PodPlan("orders", settings, ("--set", "a=1"), pod_template)


def test_a_consumer_is_made_again_as_it_was() -> None:
    """An upgraded controller makes the same pod from the template that its annotation keeps."""
    old, owner = plan(), Owner("penstock-controller", "u")
    new = replace(plan(map_name="penstock-2", image="penstock:2", cpu_limit="2"), owner=owner)
    template = DeploymentTemplate(3, pod_plan=plan_as_values(old))
    kept = template_from_text(template_as_text(template))
    assert kept == template
    made = deployment_manifest(plan_of(template, new), ONE, template)
    expected = deployment_manifest(plan_of(template, old), ONE, template)
    assert made["spec"] == expected["spec"]
    assert "penstock-1" in json.dumps(made["spec"])
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u", "the owner is the present one"
    assert plan_of(DeploymentTemplate(), new).settings.image == "penstock:2"


def test_the_digest_changes_with_what_consumers_run_with() -> None:
    """Not with the map's name alone, nor with the size of volumes that are there already."""
    digest = plan_digest(plan(), "settings")
    assert digest == plan_digest(plan(map_name="another", volume_size="9Gi"), "settings")
    changed = [
        plan_digest(plan(image="penstock:2"), "settings"),
        plan_digest(plan(memory_limit="3Gi"), "settings"),
        plan_digest(replace(plan(), pod_template={}), "settings"),
        plan_digest(replace(plan(), arguments=()), "settings"),
        plan_digest(plan(), "other settings"),
    ]
    assert len({digest, *changed}) == 6


def test_what_another_release_kept_is_read_as_far_as_it_is_known() -> None:
    """Options that this release does not know are left out; absent ones are the controller's."""
    template = DeploymentTemplate(pod_plan={"settings": {"image": "x:1", "later_option": 1}})
    found = plan_of(template, plan())
    assert (found.settings.image, found.settings.grace_period) == ("x:1", 90.0)
    assert found.pod_template == plan().pod_template


@pytest.mark.parametrize(
    "kept",
    [
        {"settings": {"cpu_limit": "much"}},
        {"settings": {"image_pull_policy": "Sometimes"}},
        {"settings": 3},
        {"settings": {}, "arguments": 3},
    ],
)
def test_what_is_not_valid_counts_as_absent(kept: dict[str, Any]) -> None:
    """It was read from Kafka or from an object: it must not end the controller."""
    assert plan_of(DeploymentTemplate(pod_plan=kept), plan()) == plan_of(
        DeploymentTemplate(), plan()
    )


def test_what_a_roll_out_changed_goes_over_the_settings_of_the_same_version() -> None:
    """Tables of a later controller do not come in with a transformation of an earlier request."""
    own = replace(plan(), tables={"orders": {"transformation": "new:f"}})
    old = replace(plan(), tables={"clicks": {"transformation": "old:f"}})
    template = DeploymentTemplate(transformations={"bids": "mine:f"}, pod_plan=plan_as_values(old))
    *_, text = plan_of(template, own).arguments
    tables = json.loads(text.removeprefix("lake.tables="))
    assert set(tables) == {"clicks", "bids"}


def test_a_gitops_tool_leaves_what_the_controller_makes() -> None:
    """Deployment and claim have no label by which Argo CD knows its own, and say: do not prune."""
    template = DeploymentTemplate()
    for one in (deployment_manifest(plan(), ONE, template), claim_manifest(plan(), ONE)):
        assert "app.kubernetes.io/instance" not in one["metadata"]["labels"]
        annotations = one["metadata"]["annotations"]
        assert annotations["argocd.argoproj.io/sync-options"] == "Prune=false"
        assert annotations["argocd.argoproj.io/compare-options"] == "IgnoreExtraneous"
