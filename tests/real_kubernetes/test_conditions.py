"""What a consumer's Deployment shows about it, on a real API server."""

from typing import Any

import pytest

from kit.kubernetes_bench import GROUP, SimulatedBench
from kit.kubernetes_cluster import until
from penstock.deployment import DeploymentTemplate
from penstock.model import ConsumerId

pytestmark = pytest.mark.kubernetes
ONE = ConsumerId(1)
FIRST = DeploymentTemplate(version=1)


def path_of(bench: SimulatedBench) -> str:
    return f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/{GROUP}-consumer-{ONE}"


def conditions(bench: SimulatedBench) -> dict[str, Any]:
    found = bench.cluster.must("GET", path_of(bench))["status"].get("conditions") or []
    return {one["type"]: one for one in found}


def shows(bench: SimulatedBench, status: str, reason: str) -> Any:
    """Tend until it shows this."""

    def ours() -> Any:
        bench.backend.tend()
        found = conditions(bench).get("penstock.io/Running")
        return found if found and (found["status"], found["reason"]) == (status, reason) else None

    return until(ours, f"the condition {status}, {reason}")


def test_the_deployment_shows_whether_its_consumer_runs(bench: SimulatedBench) -> None:
    """Beside Kubernetes' own conditions, which stay; and again after somebody removed it."""
    bench.backend.create(ONE, FIRST)
    shows(bench, "True", "Running")
    until(lambda: "Available" in conditions(bench), "Kubernetes' own")
    pod = bench.running_pod(ONE)["metadata"]["name"]
    waiting = {"reason": "ErrImagePull", "message": "no such image: penstock:9"}
    bench.set_container(pod, {"state": {"waiting": waiting}})
    told = shows(bench, "False", "ImageNotPulled")
    assert told["message"] == "no such image: penstock:9"
    assert {"Available", "Progressing"} <= set(conditions(bench))
    bench.cluster.must("DELETE", f"/api/v1/namespaces/{bench.namespace}/pods/{pod}")
    shows(bench, "True", "Running")
    whole = bench.cluster.must("GET", path_of(bench))
    whole["status"]["conditions"] = [
        one for one in whole["status"]["conditions"] if one["type"] != "penstock.io/Running"
    ]
    bench.cluster.must("PUT", f"{path_of(bench)}/status", whole)
    shows(bench, "True", "Running")


def test_a_condition_that_is_true_is_written_once(bench: SimulatedBench) -> None:
    """A group at rest asks nothing of the API server."""
    bench.backend.create(ONE, FIRST)
    shows(bench, "True", "Running")
    until(lambda: not bench.backend._conditions._written, "the copy shows it")
    before = bench.cluster.must("GET", path_of(bench))["metadata"]["resourceVersion"]
    for _ in range(20):
        bench.backend.tend()
    bench.backend._informing._waiting.put(lambda: None)
    until(bench.backend._informing._waiting.empty, "all is written")
    assert bench.cluster.must("GET", path_of(bench))["metadata"]["resourceVersion"] == before
