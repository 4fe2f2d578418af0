"""The consumers' volumes on a real API server: ownership, lifetime and access."""

from typing import Any

import pytest

from kit.kubernetes.kubernetes_bench import GROUP, IMAGE, SimulatedBench
from kit.kubernetes.kubernetes_cluster import Cluster, until
from penstock.deployment import DeploymentTemplate
from penstock.deployment.kubernetes.core.refusals import NameTakenError
from penstock.model import ConsumerId

pytestmark = pytest.mark.kubernetes
ONE = ConsumerId(1)
FIRST, SECOND = DeploymentTemplate(version=1), DeploymentTemplate(version=2)


def test_a_foreign_claim_is_never_used(bench: SimulatedBench) -> None:
    """A foreign claim with our name is an error."""
    path = f"/api/v1/namespaces/{bench.namespace}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    bench.cluster.must("POST", path, {"metadata": {"name": f"{GROUP}-consumer-1"}, "spec": spec})
    with pytest.raises(NameTakenError, match="persistentvolumeclaims"):
        bench.backend.create(ONE, FIRST)
    assert bench.cluster.deployments(bench.namespace) == []


def claims(bench: SimulatedBench) -> dict[str, str]:
    found = bench.cluster.items(bench.namespace, "persistentvolumeclaims")
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}


def test_the_volume_stays_and_is_used_again(bench: SimulatedBench) -> None:
    """A consumer's volume stays after a scale-down and is used again."""
    bench.backend.create(ONE, FIRST)
    before = claims(bench)
    bench.backend.delete(ONE)
    assert claims(bench) == before
    bench.backend.create(ONE, SECOND)
    assert claims(bench) == before
    (made,) = bench.cluster.deployments(bench.namespace)
    volumes = made["spec"]["template"]["spec"]["volumes"]
    assert {"claimName": f"{GROUP}-consumer-1"} in [v.get("persistentVolumeClaim") for v in volumes]


def test_the_volume_goes_where_that_is_set(simulated_cluster: Cluster) -> None:
    """With remove_volumes the claim is deleted with the consumer."""
    bench = SimulatedBench(simulated_cluster, remove_volumes=True)
    try:
        bench.backend.create(ONE, FIRST)
        bench.running_pod(ONE)
        bench.backend.delete(ONE)
        until(lambda: not claims(bench), "the claim is gone")
    finally:
        bench.close()


def volume_for_one_pod(cluster: Cluster, storage_class: str) -> None:
    """Create a volume for ReadWriteOncePod, as a storage class would."""
    spec = {
        "accessModes": ["ReadWriteOncePod"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": storage_class,
        "csi": {"driver": "test.penstock.io", "volumeHandle": storage_class},
    }
    cluster.must(
        "POST", "/api/v1/persistentvolumes", {"metadata": {"name": storage_class}, "spec": spec}
    )


def pod_with(claim: str) -> dict[str, Any]:
    volume = {"name": "state", "persistentVolumeClaim": {"claimName": claim}}
    container = {"name": "second", "image": IMAGE}
    return {
        "metadata": {"name": "second"},
        "spec": {"containers": [container], "volumes": [volume]},
    }


def test_a_volume_for_one_pod_alone_is_held_by_it(simulated_cluster: Cluster) -> None:
    """With ReadWriteOncePod a second pod cannot mount the volume."""
    bench = SimulatedBench(
        simulated_cluster,
        volume_access_mode="ReadWriteOncePod",
        volume_storage_class="for-one-pod",
    )
    try:
        volume_for_one_pod(simulated_cluster, "for-one-pod")
        bench.backend.create(ONE, FIRST)
        bench.running_pod(ONE)
        pods = f"/api/v1/namespaces/{bench.namespace}/pods"
        simulated_cluster.must("POST", pods, pod_with(f"{GROUP}-consumer-1"))

        def refusal() -> str:
            found = simulated_cluster.must("GET", f"{pods}/second")["status"]
            reasons = [one for one in found.get("conditions") or [] if one["status"] == "False"]
            return str(reasons[0]["message"]) if reasons else ""

        assert "ReadWriteOncePod" in until(refusal, "the second pod is refused")
    finally:
        bench.close()
        simulated_cluster.ask("DELETE", "/api/v1/persistentvolumes/for-one-pod")
