"""The back-end on a real API server: repairs, reports, foreign objects, refusals."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kit.kubernetes.faulty_proxy import FaultyProxy, once
from kit.kubernetes.kubernetes_bench import GROUP, SimulatedBench
from kit.kubernetes.kubernetes_cluster import Cluster, until
from penstock.deployment import DeploymentError, DeploymentState, DeploymentTemplate, Incident
from penstock.deployment.kubernetes import KubernetesDeployment
from penstock.deployment.kubernetes.core.manifests import Owner
from penstock.deployment.kubernetes.core.refusals import MissingRightError, NameTakenError
from penstock.deployment.kubernetes.process.api import Api
from penstock.model import ConsumerId

pytestmark = pytest.mark.kubernetes
ONE, TWO = ConsumerId(1), ConsumerId(2)
FIRST = DeploymentTemplate(version=1, environment={"COLOUR": "blue"})
DEPLOYMENTS = "apis/apps/v1/namespaces"


def path_of(bench: SimulatedBench, consumer: ConsumerId) -> str:
    return f"/{DEPLOYMENTS}/{bench.namespace}/deployments/{GROUP}-consumer-{consumer}"


def names(bench: SimulatedBench) -> list[str]:
    return sorted(one["metadata"]["name"] for one in bench.cluster.deployments(bench.namespace))


def incidents(bench: SimulatedBench, of: ConsumerId, within_s: float = 30) -> list[Incident]:
    """Call `repair` until an incident of the consumer is reported."""
    reported: list[Incident] = []

    def is_reported() -> bool:
        reported.extend(bench.backend.repair())
        return any(one.consumer == of for one in reported)

    until(is_reported, f"an incident of consumer {of}", within_s)
    return [one for one in reported if one.consumer == of]


def events(bench: SimulatedBench, reason: str) -> list[Any]:
    found = bench.cluster.items(bench.namespace, "events")
    return [
        one
        for one in found
        if one["reason"] == reason and one["source"].get("component") == "penstock-controller"
    ]


def test_a_deleted_deployment_is_made_again(bench: SimulatedBench) -> None:
    """A deleted Deployment is recreated, reported and written as an Event."""
    bench.backend.create(ONE, FIRST)
    bench.backend.create(TWO, FIRST)
    uid = bench.cluster.must("GET", path_of(bench, ONE))["metadata"]["uid"]
    bench.cluster.must("DELETE", path_of(bench, ONE))
    (incident,) = incidents(bench, ONE)
    assert "deleted by another client and was made again" in incident.explanation
    made = bench.cluster.must("GET", path_of(bench, ONE))
    assert made["metadata"]["uid"] != uid
    assert made["metadata"]["annotations"]["penstock.io/template-version"] == "1"
    environment = made["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "COLOUR", "value": "blue"} in environment
    until(lambda: events(bench, "MadeAgain"), "an Event about it")
    assert bench.backend.repair() == []


def test_a_controller_that_returns_repairs_too(bench: SimulatedBench) -> None:
    """A restarted controller recreates a Deployment from its annotation."""
    bench.backend.create(ONE, FIRST)
    bench.backend = bench.another()
    bench.backend.list_consumers()
    bench.cluster.must("DELETE", path_of(bench, ONE))
    incidents(bench, ONE)
    made = bench.cluster.must("GET", path_of(bench, ONE))
    environment = made["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "COLOUR", "value": "blue"} in environment


@pytest.mark.parametrize("replicas", [0, 3])
def test_a_scaled_deployment_is_scaled_back(bench: SimulatedBench, replicas: int) -> None:
    """A Deployment scaled to 0 or more than 1 is scaled back to 1."""
    bench.backend.create(ONE, FIRST)
    scale = {"spec": {"replicas": replicas}}
    bench.cluster.must("PATCH", path_of(bench, ONE), scale, "merge-patch+json")
    incident, *after = incidents(bench, ONE)
    assert f"scaled to {replicas} by another client" in incident.explanation
    # Kubernetes chooses which pod ends, so the end of the first one may be reported too.
    assert all("its pod is gone" in one.explanation for one in after)
    assert bench.cluster.must("GET", path_of(bench, ONE))["spec"]["replicas"] == 1
    until(lambda: events(bench, "ScaledBack"), "an Event about it")


def test_what_we_deleted_stays_deleted(bench: SimulatedBench) -> None:
    """A consumer that we deleted is not recreated, even after an outdated list."""
    bench.backend.create(ONE, FIRST)
    before = bench.cluster.deployments(bench.namespace)
    bench.backend.delete(ONE)
    bench.backend._adopt(ONE, before[0])
    until(lambda: not bench.backend._deployments.objects(), "the copy knows")
    assert bench.backend.repair() == []
    assert names(bench) == []


def test_a_deleted_pod_is_reported(bench: SimulatedBench) -> None:
    """A deleted pod is replaced by Kubernetes and reported."""
    bench.backend.create(ONE, FIRST)
    pod = bench.running_pod(ONE)
    until(bench.backend._pods.objects, "the copy knows its pod")
    assert bench.backend.repair() == []
    bench.cluster.must(
        "DELETE", f"/api/v1/namespaces/{bench.namespace}/pods/{pod['metadata']['name']}"
    )
    (incident,) = incidents(bench, ONE)
    assert "started again in its place" in incident.explanation


def waiting(reason: str, message: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def test_a_consumer_that_cannot_start_is_reported(
    bench: SimulatedBench,
) -> None:
    """A consumer that cannot start is reported with its reason, and the others start."""
    bench.backend.create(ONE, FIRST)
    pod = bench.running_pod(ONE)["metadata"]["name"]
    bench.set_container(pod, waiting("ErrImagePull", "no such image: penstock:9"))
    (incident,) = incidents(bench, ONE)
    assert "no such image: penstock:9" in incident.explanation
    bench.set_container(pod, waiting("ImagePullBackOff", "Back-off pulling"))
    told_again = "ImageNotPulled: Back-off pulling"
    until(lambda: bench.backend.list_consumers()[ONE].detail == told_again, "the watch tells")
    assert bench.backend.list_consumers()[ONE].state is DeploymentState.FAILED
    begun_s = time.monotonic()
    bench.backend.create(TWO, FIRST)
    assert time.monotonic() - begun_s < 2
    assert bench.backend.list_consumers()[TWO].state is DeploymentState.RUNNING
    (event,) = until(lambda: events(bench, "ImageNotPulled"), "an Event about it")
    assert event["type"] == "Warning"
    assert event["involvedObject"]["name"] == f"{GROUP}-consumer-1"
    assert bench.backend.repair() == []


def test_a_consumer_that_cannot_be_scheduled_is_reported(simulated_cluster: Cluster) -> None:
    """A consumer that cannot be scheduled is reported with the scheduler's message."""
    bench = SimulatedBench(simulated_cluster, memory_request="9000Gi", memory_limit="9000Gi")
    try:
        bench.backend.create(ONE, FIRST)
        (incident,) = incidents(bench, ONE)
        assert "Insufficient memory" in incident.explanation
        found = bench.backend.list_consumers()[ONE]
        assert found.state is DeploymentState.FAILED
        assert found.detail.startswith("Unschedulable: ")
        begun_s = time.monotonic()
        bench.backend.delete(ONE)
        assert time.monotonic() - begun_s < 10
    finally:
        bench.close()


def foreign(bench: SimulatedBench) -> dict[str, Any]:
    labels = {"app": "theirs"}
    container = {"name": "theirs", "image": "theirs:1"}
    return {
        "metadata": {"name": f"{GROUP}-consumer-1", "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def test_a_foreign_object_is_never_touched(bench: SimulatedBench) -> None:
    """A foreign object with our name is an error, and it is never listed, changed or deleted."""
    path = f"/{DEPLOYMENTS}/{bench.namespace}/deployments"
    theirs = bench.cluster.must("POST", path, foreign(bench))
    with pytest.raises(NameTakenError, match=f"{GROUP}-consumer-1") as raised:
        bench.backend.create(ONE, FIRST)
    assert not raised.value.is_retryable
    assert raised.value.remedy
    bench.backend.delete(ONE)
    assert bench.backend.list_consumers() == {}
    assert bench.backend.repair() == []
    now = bench.cluster.must("GET", path_of(bench, ONE))
    assert now["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert now["metadata"]["generation"] == theirs["metadata"]["generation"]
    bench.backend.create(TWO, FIRST)
    assert set(bench.backend.list_consumers()) == {TWO}


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_failing_server_is_retried(
    proxied: SimulatedBench, proxy: FaultyProxy, status: int
) -> None:
    """Every call that fails once for a temporary reason succeeds in the end."""
    if status != 409:  # a conflict at creation means that the object exists
        proxy.before = once("POST", "/deployments", status)
    proxied.backend.create(ONE, FIRST)
    path = path_of(proxied, ONE)
    proxied.cluster.must("PATCH", path, {"spec": {"replicas": 0}}, "merge-patch+json")
    proxy.before = once("PUT", "/deployments", status)
    until(
        lambda: any("scaled back" in one.explanation for one in proxied.backend.repair()), "repair"
    )
    assert proxied.cluster.must("GET", path)["spec"]["replicas"] == 1
    if status != 409:
        proxy.before = once("DELETE", "/deployments", status)
        proxied.backend.delete(ONE)
        assert names(proxied) == []
    else:
        proxy.before = once("DELETE", "/deployments", status)
        with pytest.raises(DeploymentError) as raised:
            proxied.backend.delete(ONE)
        assert raised.value.is_retryable
        proxied.backend.delete(ONE)
    assert proxied.backend.list_consumers() == {}


def test_a_creation_that_timed_out_but_happened_is_no_error(
    proxied: SimulatedBench, proxy: FaultyProxy
) -> None:
    """If the answer to a creation is lost, the created object is found and kept."""

    def lost_answers(method: str, path: str, status: int, body: bytes) -> tuple[int, bytes]:
        is_first = proxy.count("POST", path) == 0
        return (504, b"{}") if method == "POST" and is_first else (status, body)

    proxy.after = lost_answers
    proxied.backend.create(ONE, FIRST)
    assert names(proxied) == [f"{GROUP}-consumer-1"]
    assert proxied.backend.list_consumers()[ONE].version == 1
    assert proxied.backend.repair() == []


def test_a_stale_list_neither_makes_nor_deletes_anything(
    proxied: SimulatedBench, proxy: FaultyProxy
) -> None:
    """An outdated list neither recreates a deleted consumer nor deletes a new one."""
    proxied.backend.create(ONE, FIRST)
    old: list[bytes] = []

    def remembered(method: str, path: str, status: int, body: bytes) -> tuple[int, bytes]:
        if method == "GET" and "/deployments?" in path:
            old.append(body)
        return status, body

    def stale(method: str, path: str, status: int, body: bytes) -> tuple[int, bytes]:
        return (200, old[0]) if method == "GET" and "/deployments?" in path else (status, body)

    proxy.after = remembered
    proxied.backend.list_consumers()
    proxied.backend.delete(ONE)
    proxied.backend.create(TWO, FIRST)
    proxy.after = stale
    assert set(proxied.backend.list_consumers()) == {ONE}
    proxied.backend._deployments._since = proxied.backend._deployments._list()
    for _ in range(5):
        proxied.backend.repair()
        time.sleep(0.1)
    assert names(proxied) == [f"{GROUP}-consumer-2"]
    proxy.after = lambda _, __, status, body: (status, body)
    assert set(proxied.backend.list_consumers()) == {TWO}


def rules_without(verb: str, resource: str) -> Callable[[list[Any]], list[Any]]:
    def changed(rules: list[Any]) -> list[Any]:
        return [
            {
                **one,
                "verbs": [v for v in one["verbs"] if v != verb or resource not in one["resources"]],
            }
            for one in rules
        ]

    return changed


def test_a_missing_right_is_named_and_asked_for_once(
    proxied: SimulatedBench, proxy: FaultyProxy
) -> None:
    """A missing right is named with verb, resource and namespace, and requested only once."""
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{proxied.namespace}/roles"
    found = proxied.cluster.must("GET", f"{role}/penstock-controller")
    found["rules"] = rules_without("create", "deployments")(found["rules"])
    proxied.cluster.must("PUT", f"{role}/penstock-controller", found)

    def is_refused() -> bool:
        try:
            proxied.backend.create(ONE, FIRST)
        except MissingRightError:
            return True
        proxied.backend.delete(ONE)
        return False

    until(is_refused, "the server has noticed the new role")
    asked = proxy.count("POST", "/deployments")
    for _ in range(5):
        with pytest.raises(MissingRightError, match="create deployments of apps") as raised:
            proxied.backend.create(ONE, FIRST)
        assert not raised.value.is_retryable
        assert proxied.namespace in raised.value.message
    assert proxy.count("POST", "/deployments") == asked


def test_a_watch_that_is_refused_is_reported_once_and_not_hammered(
    proxied: SimulatedBench, proxy: FaultyProxy
) -> None:
    """A refused watch is reported once, not retried quickly, and its copy is not used."""
    proxied.backend.create(ONE, FIRST)
    proxy.before = lambda method, path: 403 if method == "GET" and "/pods?" in path else None
    second = KubernetesDeployment(Api(proxied._access), proxied.plan)
    with pytest.raises(MissingRightError, match="list pods"):
        second.start()
    asked = proxy.count("GET", "/pods?")
    with pytest.raises(MissingRightError, match="list pods"):
        second._pods._list()
    assert proxy.count("GET", "/pods?") == asked


def test_an_owner_takes_its_consumers_along(bench: SimulatedBench) -> None:
    """Deleting the controller's Deployment deletes its consumers and keeps their volumes."""
    path = f"/{DEPLOYMENTS}/{bench.namespace}/deployments"
    body = {**foreign(bench), "metadata": {"name": "the-controller", "labels": {"app": "theirs"}}}
    uid = bench.cluster.must("POST", path, body)["metadata"]["uid"]
    bench.plan = replace(bench.plan, owner=Owner("the-controller", uid))
    backend = bench.another()
    backend.create(ONE, FIRST)
    backend.close()
    bench.cluster.must("DELETE", f"{path}/the-controller")
    until(lambda: names(bench) == [], "the consumer's Deployment is gone")
    assert bench.cluster.items(bench.namespace, "persistentvolumeclaims")


def test_pods_get_no_token_and_cannot_become_root(bench: SimulatedBench) -> None:
    """A stored pod has no token, no root, and passes the restricted standard."""
    namespace = f"/api/v1/namespaces/{bench.namespace}"
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    bench.cluster.must("PATCH", namespace, label, "merge-patch+json")
    bench.backend.create(ONE, FIRST)
    pod = bench.running_pod(ONE)["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert not any("kube-api-access" in one["name"] for one in pod["volumes"])
    assert pod["serviceAccountName"] == "penstock-consumer"
    account = json.dumps(pod)
    assert "serviceAccountToken" not in account
