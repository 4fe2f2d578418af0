"""The condition of a consumer's Deployment on a real API server."""

from typing import Any

import pytest

from kit.kubernetes.kubernetes_bench import GROUP, SimulatedBench
from kit.kubernetes.kubernetes_cluster import Cluster, until
from penstock.deployment import DeploymentTemplate
from penstock.deployment.kubernetes.core.refusals import Right
from penstock.model import ConsumerId

pytestmark = pytest.mark.kubernetes
ONE = ConsumerId(1)
FIRST = DeploymentTemplate(version=1)
PATCH = Right("patch", "deployments/status", "apps")


def path_of(bench: SimulatedBench) -> str:
    return f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/{GROUP}-consumer-{ONE}"


def conditions(bench: SimulatedBench) -> dict[str, Any]:
    found = bench.cluster.must("GET", path_of(bench))["status"].get("conditions") or []
    return {one["type"]: one for one in found}


def shows(bench: SimulatedBench, status: str, reason: str) -> Any:
    """Call `repair` until the condition has this status and reason."""

    def ours() -> Any:
        bench.backend.repair()
        found = conditions(bench).get("penstock.io/Running")
        return found if found and (found["status"], found["reason"]) == (status, reason) else None

    return until(ours, f"the condition {status}, {reason}")


def test_the_deployment_shows_whether_its_consumer_runs(bench: SimulatedBench) -> None:
    """Our condition is set beside Kubernetes' own, and set again after it was removed."""
    bench.backend.create(ONE, FIRST)
    shows(bench, "True", "Running")
    until(lambda: "Available" in conditions(bench), "Kubernetes' own")
    pod = bench.running_pod(ONE)["metadata"]["name"]
    waiting = {"reason": "ErrImagePull", "message": "no such image: penstock:9"}
    bench.set_container(pod, {"state": {"waiting": waiting}})
    condition = shows(bench, "False", "ImageNotPulled")
    assert condition["message"] == "no such image: penstock:9"
    assert {"Available", "Progressing"} <= set(conditions(bench))
    bench.cluster.must("DELETE", f"/api/v1/namespaces/{bench.namespace}/pods/{pod}")
    shows(bench, "True", "Running")
    removed = {"type": "penstock.io/Running", "$patch": "delete"}
    patch = {"status": {"conditions": [removed]}}
    path = f"{path_of(bench)}/status"
    bench.cluster.must("PATCH", path, patch, "strategic-merge-patch+json")
    assert "penstock.io/Running" not in conditions(bench)
    shows(bench, "True", "Running")


def test_a_condition_that_is_true_is_written_once(simulated_cluster: Cluster) -> None:
    """A condition that is up to date is not written again."""
    used: list[Right] = []
    bench = SimulatedBench(simulated_cluster, on_call=used.append)
    try:
        bench.backend.create(ONE, FIRST)
        shows(bench, "True", "Running")
        until(lambda: not bench.backend.repair() and is_settled(bench), "the copy shows it")
        before = used.count(PATCH)
        for _ in range(20):
            bench.backend.repair()
            assert is_settled(bench)
        assert used.count(PATCH) == before
    finally:
        bench.close()


def is_settled(bench: SimulatedBench) -> bool:
    """Whether no call to the API server is pending."""
    return not bench.backend._conditions._written
