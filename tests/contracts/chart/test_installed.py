"""The chart on a real API server: installed, upgraded and removed.

The pods are simulated and run no code. The tests show that every object is accepted, that claims
bind and Deployments become available, that the controller's account has exactly its role's rights,
and what is left after the release is removed.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.kubernetes.helm import CHART
from kit.kubernetes.helm import helm as run_helm
from kit.kubernetes.kubernetes_cluster import Cluster, ask, paused_nodes, until
from penstock.deployment.interface import DeploymentTemplate
from penstock.deployment.kubernetes import kubernetes_deployment
from penstock.model import ConsumerId
from penstock.settings.load import load_settings

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1300)]  # a first run compiles much
VALUES = Path(__file__).parent / "values"


class Release:
    """One release in a namespace of its own."""

    def __init__(self, helm: Path, cluster: Cluster) -> None:
        self._helm = helm
        self.cluster = cluster
        self.namespace = f"chart-{uuid.uuid4().hex[:8]}"

    def run(self, *arguments: str) -> str:
        done = run_helm(
            self._helm,
            *arguments,
            *("--namespace", self.namespace, "--kubeconfig", str(self.cluster.kubeconfig)),
            timeout_s=180,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *arguments: str) -> str:
        wait = ("--create-namespace", "--wait", "--timeout", "90s")
        return self.run("install", "penstock", str(CHART), *wait, *arguments)

    def deployments(self) -> dict[str, Any]:
        return {one["metadata"]["name"]: one for one in self.cluster.deployments(self.namespace)}

    def claims(self) -> dict[str, Any]:
        found = self.cluster.items(self.namespace, "persistentvolumeclaims")
        return {one["metadata"]["name"]: one for one in found}

    def settings_maps(self) -> dict[str, Any]:
        found = self.cluster.items(self.namespace, "configmaps")
        return {
            one["metadata"]["name"]: one
            for one in found
            if "penstock.yaml" in (one.get("data") or {})
        }

    def settings_file(self, folder: Path) -> Path:
        """The two files of the ConfigMap in one folder, as in the controller's pod."""
        (data,) = (one["data"] for one in self.settings_maps().values())
        template = folder / "pod-template.yaml"
        template.write_text(data["pod-template.yaml"], encoding="utf-8")
        file = folder / "penstock.yaml"
        text = data["penstock.yaml"].replace("/etc/penstock/pod-template.yaml", str(template))
        assert str(template) in text
        file.write_text(text, encoding="utf-8")
        return file


@pytest.fixture
def release(helm: Path, simulated_cluster: Cluster) -> Iterator[Release]:
    made = Release(helm, simulated_cluster)
    yield made
    made.cluster.forget_namespace(made.namespace)


@pytest.mark.parametrize("values", [None, "connect", "secured"])
def test_it_installs_and_becomes_ready(release: Release, values: str | None) -> None:
    """Every object is accepted, every claim binds, every Deployment becomes available."""
    given = () if values is None else ("-f", str(VALUES / f"{values}.yaml"))
    is_alone = values == "secured"
    given = (*given, "--set", "controller.standby=false") if is_alone else given
    notes = release.install(*given)
    assert "penstock status" in notes
    made = release.deployments()
    expected = {"penstock-controller", "penstock-monitor"}
    assert set(made) == expected | ({"penstock-spark"} if values == "connect" else set())
    for name, one in made.items():
        assert one["status"].get("availableReplicas") == one["spec"]["replicas"], name
    assert made["penstock-controller"]["spec"]["replicas"] == (1 if is_alone else 2)
    claims = release.claims()
    # The lake of these values is an object store.
    assert set(claims) == ({"penstock-controller"} if is_alone else {"penstock-lake"})
    for name, one in claims.items():
        assert one["status"]["phase"] == "Bound", name


def test_an_upgrade_keeps_the_controllers_object(release: Release) -> None:
    """An upgrade changes the controller's Deployment in place and keeps its selector."""
    release.install()
    before = release.deployments()["penstock-controller"]
    wait = ("--wait", "--timeout", "90s")
    release.run("upgrade", "penstock", str(CHART), "-f", str(VALUES / "connect.yaml"), *wait)
    after = release.deployments()["penstock-controller"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["selector"] == before["spec"]["selector"]
    sums = [
        one["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for one in (before, after)
    ]
    assert sums[0] != sums[1]


def test_the_controllers_account_makes_consumers_and_they_go_with_the_release(
    release: Release, tmp_path: Path
) -> None:
    """The chart's account creates consumers; after removal only claims with data are left."""
    release.install("-f", str(VALUES / "connect.yaml"))
    cluster, namespace = release.cluster, release.namespace
    access = cluster.access_with(cluster.token(namespace), namespace)
    loaded = load_settings(release.settings_file(tmp_path), environment={})
    backend = kubernetes_deployment(loaded, allowed=access)
    try:
        backend.create(ConsumerId(1), DeploymentTemplate())
        name = "penstock-consumer-1"
        until(lambda: release.deployments()[name]["status"].get("availableReplicas"), "it is up")
    finally:
        backend.close()
    pod = release.deployments()[name]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "penstock-consumer"
    assert pod["automountServiceAccountToken"] is False
    assert {one["name"] for one in pod["volumes"]} >= {"lake", "state", "settings"}
    release.run("uninstall", "penstock", "--wait", "--timeout", "60s")
    until(lambda: not release.deployments(), "all Deployments are gone")
    assert set(release.claims()) == {"penstock-lake", name}


def test_only_the_controllers_account_has_rights(release: Release) -> None:
    """The controller's account has rights in its namespace only; the consumers' has none."""
    release.install()
    cluster, namespace = release.cluster, release.namespace
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    controller = cluster.access_with(cluster.token(namespace), namespace).client
    assert ask(controller, "GET", deployments)[0] == 200
    for path in (
        f"/api/v1/namespaces/{namespace}/secrets",
        f"/api/v1/namespaces/{namespace}/configmaps",
        "/apis/apps/v1/namespaces/default/deployments",
        "/api/v1/nodes",
    ):
        assert ask(controller, "GET", path)[0] == 403, path
    for account in ("penstock-consumer", "penstock-monitor"):
        client = cluster.access_with(cluster.token(namespace, account), namespace).client
        assert ask(client, "GET", deployments)[0] == 403, account
        assert ask(client, "GET", f"/api/v1/namespaces/{namespace}/pods")[0] == 403, account


def test_an_upgrade_keeps_the_settings_of_the_consumers_that_run(release: Release) -> None:
    """The former settings map stays for them, and for `helm rollback`; neither can be changed."""
    release.install()
    (first,) = release.settings_maps()
    wait = ("--wait", "--timeout", "90s")
    changed = ("--set", "settings.controller.consumers_max=7")
    release.run("upgrade", "penstock", str(CHART), *changed, *wait)
    both = release.settings_maps()
    assert first in both
    assert len(both) == 2
    release.run("rollback", "penstock", "1", *wait)
    assert set(release.settings_maps()) == set(both)
    volumes = release.deployments()["penstock-controller"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "settings", "configMap": {"name": first, "defaultMode": 420}} in volumes
    path = f"/api/v1/namespaces/{release.namespace}/configmaps/{first}"
    edited = {"data": {"penstock.yaml": "lake: {group: other}"}}
    status, _ = release.cluster.ask("PATCH", path, edited, "merge-patch+json")
    assert status == 422


def evicted(release: Release, pod: str) -> int:
    """What the API server answers to who drains a node."""
    path = f"/api/v1/namespaces/{release.namespace}/pods/{pod}"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    return release.cluster.ask("POST", f"{path}/eviction", body)[0]


def two_consumers_in_a_restricted_namespace(release: Release, tmp_path: Path) -> list[str]:
    """The names of their deployments, when both are up."""
    cluster, namespace = release.cluster, release.namespace
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    cluster.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}})
    release.install("-f", str(VALUES / "connect.yaml"))
    access = cluster.access_with(cluster.token(namespace), namespace)
    loaded = load_settings(release.settings_file(tmp_path), environment={})
    backend = kubernetes_deployment(loaded, allowed=access)
    two = [ConsumerId(1), ConsumerId(2)]
    try:
        for one in two:
            backend.create(one, DeploymentTemplate())
        names = [f"penstock-consumer-{one}" for one in two]
        until(
            lambda: all(
                release.deployments()[name]["status"].get("availableReplicas") for name in names
            ),
            "both are up",
        )
    finally:
        backend.close()
    return names


def test_a_drain_takes_one_consumer_at_a_time(release: Release, tmp_path: Path) -> None:
    """A second eviction waits until the first consumer is ready again; the namespace is restricted.

    A budget expects the pods of those Deployments that have a pod. Simulated pods end at once, so
    that for a moment the first consumer would have none, and the budget would not expect it. With
    the nodes paused it ends as slowly, and its successor starts as slowly, as on a real one.
    """
    names = two_consumers_in_a_restricted_namespace(release, tmp_path)
    cluster, namespace = release.cluster, release.namespace
    budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/penstock-consumers"

    def pods_of(name: str) -> list[str]:
        found = [one["metadata"]["name"] for one in cluster.items(namespace, "pods")]
        return [pod for pod in found if pod.startswith(name)]

    def healthy_of_two() -> int:
        status = cluster.must("GET", budget)["status"]
        return int(status["currentHealthy"]) if status["expectedPods"] == 2 else -1

    until(lambda: healthy_of_two() == 2, "the budget has seen both")
    (first,), (second,) = (pods_of(name) for name in names)
    with paused_nodes(cluster):
        assert evicted(release, first) == 201
        assert evicted(release, second) == 429
        until(lambda: len(pods_of(names[0])) == 2, "the first one has a successor")
        until(lambda: healthy_of_two() == 1, "the budget waits for it")
        assert evicted(release, second) == 429
    until(lambda: healthy_of_two() == 2, "the successor is ready")
    assert evicted(release, second) == 201
