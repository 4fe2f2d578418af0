"""The Kubernetes objects made from settings and template."""

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
from penstock.deployment.kubernetes.core.names import (
    consumer_of,
    dns_label,
    is_ours,
    object_name,
    selector_text,
)
from penstock.deployment.kubernetes.core.pod_plans import plan_of
from penstock.deployment.kubernetes.core.pod_template import invalid_reason, merged
from penstock.model import ConsumerId
from penstock.settings.sections import KubernetesSettings

SEVEN = ConsumerId(7)


def plan(pod_template: Any = None, owner: Owner | None = None, **changes: Any) -> PodPlan:
    settings = KubernetesSettings.model_validate({"image": "registry/penstock:1", **changes})
    return PodPlan("orders", settings, ("--set", "a=b"), pod_template or {}, owner)


def pod_of(manifest: dict[str, Any]) -> Any:
    return manifest["spec"]["template"]["spec"]


def container_of(manifest: dict[str, Any], name: str = "consumer") -> Any:
    return next(one for one in pod_of(manifest)["containers"] if one["name"] == name)


def test_one_replica_that_is_replaced_and_never_doubled() -> None:
    """A Deployment has one replica, strategy Recreate, and the labels of its pod."""
    made = deployment_manifest(plan(), SEVEN, DeploymentTemplate(version=3))
    assert made["metadata"]["name"] == "orders-consumer-7"
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["strategy"] == {"type": "Recreate"}
    labels = made["metadata"]["labels"]
    assert labels == {
        "app.kubernetes.io/name": "penstock",
        "app.kubernetes.io/component": "consumer",
        "app.kubernetes.io/managed-by": "penstock-controller",
        "penstock.io/group": "orders",
        "penstock.io/consumer": "7",
    }
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert made["metadata"]["annotations"]["penstock.io/template-version"] == "3"
    shown = made["spec"]["template"]["metadata"]["annotations"]
    assert shown == {"penstock.io/template-version": "3"}


def test_the_pod_learns_its_number_from_its_own_label() -> None:
    """The consumer id comes from the downward API, the version from a flag."""
    container = container_of(deployment_manifest(plan(), SEVEN, DeploymentTemplate(version=3)))
    (identity,) = container["env"]
    assert identity["name"] == "PENSTOCK_CONSUMER_ID"
    field = identity["valueFrom"]["fieldRef"]["fieldPath"]
    assert field == "metadata.labels['penstock.io/consumer']"
    command = container["command"]
    assert command[:2] == ["penstock", "consumer"]
    assert command[command.index("--deployment-version") + 1] == "3"
    assert "--id" not in command
    assert command[-2:] == ["--set", "a=b"]


def test_the_pod_has_no_rights_and_has_limits() -> None:
    """A pod has no token, no root, no capabilities, a read-only root and limits."""
    made = deployment_manifest(plan(), SEVEN, DeploymentTemplate())
    pod, container = pod_of(made), container_of(made)
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == "penstock-consumer"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"] == {
        "requests": {"cpu": "250m", "memory": "512Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    assert pod["terminationGracePeriodSeconds"] == 60
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        assert container[probe]["httpGet"]["port"] == "health"
    assert container["ports"][0]["containerPort"] == 8080


def test_a_roll_out_changes_image_resources_environment_and_arguments() -> None:
    """A roll-out's template wins over the settings; the rest stays."""
    template = DeploymentTemplate(
        version=4,
        environment={"COLOUR": "blue"},
        image="registry/penstock:2",
        cpu_millicores=500,
        memory_megabytes=900,
        spark_settings={"spark.sql.shuffle.partitions": "4"},
    )
    container = container_of(deployment_manifest(plan_of(template, plan()), SEVEN, template))
    assert container["image"] == "registry/penstock:2"
    assert container["resources"]["limits"] == {"cpu": "500m", "memory": "900M"}
    assert {"name": "COLOUR", "value": "blue"} in container["env"]
    assert container["command"][-4:] == [
        *("--set", "a=b"),
        *("--set", 'spark.options={"spark.sql.shuffle.partitions": "4"}'),
    ]


def test_the_state_directory_is_the_claim() -> None:
    """Each consumer has one claim, with the Deployment's name, as its state directory."""
    made = deployment_manifest(plan(), SEVEN, DeploymentTemplate())
    volumes = {one["name"]: one for one in pod_of(made)["volumes"]}
    assert volumes["state"]["persistentVolumeClaim"] == {"claimName": "orders-consumer-7"}
    container = container_of(made)
    command = container["command"]
    assert command[command.index("--state-dir") + 1] == "/var/lib/penstock/state"
    assert "consumer.state_wait=60s" in command, "a pod that still ends is waited for"
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert mounts["state"] == "/var/lib/penstock/state"
    assert volumes["scratch"] == {"name": "scratch", "emptyDir": {}}
    claim = claim_manifest(plan(volume_storage_class="fast", volume_size="2Gi"), SEVEN)
    assert claim["metadata"]["name"] == "orders-consumer-7"
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        "storageClassName": "fast",
    }


def test_settings_come_by_config_map_when_one_is_named() -> None:
    """The ConfigMap is mounted and named on the command line."""
    made = deployment_manifest(plan(settings_config_map="ours"), SEVEN, DeploymentTemplate())
    command = container_of(made)["command"]
    assert command[command.index("--settings") + 1] == "/etc/penstock/penstock.yaml"
    assert {"name": "settings", "configMap": {"name": "ours"}} in pod_of(made)["volumes"]


def test_the_owner_takes_the_deployment_along_but_not_the_kept_volume() -> None:
    """The Deployment has the owner; the claim has it only with remove_volumes."""
    owner = Owner("penstock-controller", "uid-1")
    made = deployment_manifest(plan(owner=owner), SEVEN, DeploymentTemplate())
    (reference,) = made["metadata"]["ownerReferences"]
    assert (reference["name"], reference["uid"]) == ("penstock-controller", "uid-1")
    assert reference["blockOwnerDeletion"] is False
    assert "ownerReferences" not in claim_manifest(plan(owner=owner), SEVEN)["metadata"]
    removed = claim_manifest(plan(owner=owner, remove_volumes=True), SEVEN)
    assert removed["metadata"]["ownerReferences"] == [reference]


def test_the_users_template_is_merged_into_ours() -> None:
    """Mappings and named entries are merged, other lists replaced, null removes a value."""
    over = {
        "metadata": {"labels": {"team": "lake", "penstock.io/consumer": "99"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "lake", "operator": "Exists"}],
            "securityContext": {"runAsUser": 5, "fsGroup": None},
            "containers": [
                {
                    "name": "consumer",
                    "env": [
                        {"name": "REGION", "value": "eu"},
                        {"name": "PENSTOCK_CONSUMER_ID", "value": "99"},
                    ],
                    "resources": {"limits": {"memory": "3Gi"}},
                    "livenessProbe": None,
                    "volumeMounts": [{"name": "lake", "mountPath": "/lake"}],
                },
                {"name": "sidecar", "image": "proxy:1"},
            ],
            "volumes": [{"name": "lake", "hostPath": {"path": "/lake"}}],
        },
    }
    made = deployment_manifest(plan(over), SEVEN, DeploymentTemplate())
    pod, container = pod_of(made), container_of(made)
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert (labels["team"], labels["penstock.io/consumer"]) == ("lake", "7")
    assert pod["nodeSelector"] == {"disk": "ssd"}
    assert pod["securityContext"]["runAsUser"] == 5
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert "fsGroup" not in pod["securityContext"]
    assert {one["name"] for one in pod["volumes"]} == {"state", "scratch", "lake"}
    assert {one["name"] for one in container["volumeMounts"]} == {"state", "scratch", "lake"}
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "3Gi"}
    assert "livenessProbe" not in container
    assert container_of(made, "sidecar")["image"] == "proxy:1"
    variables = {one["name"]: one for one in container["env"]}
    assert variables["REGION"]["value"] == "eu"
    assert "value" not in variables["PENSTOCK_CONSUMER_ID"]


def test_merging_changes_neither_template() -> None:
    """Merging changes neither of its arguments."""
    over = {"spec": {"containers": [{"name": "consumer", "env": [{"name": "A", "value": "1"}]}]}}
    kept = repr(over)
    first = deployment_manifest(plan(over), SEVEN, DeploymentTemplate())
    second = deployment_manifest(plan(over), SEVEN, DeploymentTemplate())
    assert first == second
    assert repr(over) == kept
    assert merged({"a": [1, 2]}, {"a": [3]}) == {"a": [3]}


@pytest.mark.parametrize(
    ("template", "explanation"),
    [
        ([], "not a mapping"),
        ({"containers": []}, "not 'containers'"),
        ({"spec": 3}, "spec is not a mapping"),
        ({"spec": {"containers": [{"image": "x"}]}}, "needs a name"),
    ],
)
def test_an_invalid_template_is_refused(template: Any, explanation: str) -> None:
    """An invalid pod template is refused with the reason."""
    found = invalid_reason(template)
    assert found is not None
    assert explanation in found
    assert invalid_reason({"spec": {"containers": [{"name": "consumer"}]}}) is None


def test_names_fit_kubernetes_and_groups_stay_apart() -> None:
    """A changed group name gets a hash, so that two groups never share objects."""
    assert object_name("orders", SEVEN) == "orders-consumer-7"
    names = {dns_label(one) for one in ("orders.eu", "orders_eu", "Orders-eu", "orders-eu")}
    assert len(names) == 4
    for group in ("a" * 249, "...", "9lives", "Ä" * 3, "-x-"):
        label = dns_label(group)
        assert len(object_name(group, ConsumerId(100_000))) <= 63
        assert label[0].isalpha()
        assert set(label) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert not label.endswith("-")
    assert "penstock.io/group=orders" in selector_text("orders")


def test_only_what_has_all_our_labels_is_ours() -> None:
    """An object with a wrong or missing label is not ours."""
    made = deployment_manifest(plan(), SEVEN, DeploymentTemplate())
    labels = made["metadata"]["labels"]
    assert is_ours(labels, "orders")
    assert not is_ours(labels, "payments")
    for name in labels:
        if name not in {"app.kubernetes.io/instance", "penstock.io/consumer"}:
            assert not is_ours({key: labels[key] for key in labels if key != name}, "orders")
    assert consumer_of(labels) == SEVEN
    assert consumer_of({"penstock.io/consumer": "seven"}) is None
    assert consumer_of({"penstock.io/consumer": "0"}) is None
    assert consumer_of({}) is None


def test_a_template_survives_the_annotation() -> None:
    """A template survives the annotation; invalid text gives no template."""
    template = DeploymentTemplate(version=9, environment={"A": "b"}, image="x:1", cpu_millicores=5)
    assert template_from_text(template_as_text(template)) == template
    for text in ("", "{", "[]", '{"colour": 1}', "3"):
        assert template_from_text(text) is None
