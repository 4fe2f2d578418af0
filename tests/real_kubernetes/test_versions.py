"""Consumers of an older version on a real API server, looked after by an upgraded controller."""

from dataclasses import replace
from typing import Any

import pytest

from kit.kubernetes.kubernetes_bench import GROUP, SimulatedBench
from kit.kubernetes.kubernetes_cluster import until
from penstock.deployment import DeploymentTemplate
from penstock.deployment.kubernetes import KubernetesDeployment
from penstock.deployment.kubernetes.core.pod_plans import plan_as_values
from penstock.model import ConsumerId

pytestmark = pytest.mark.kubernetes
ONE, TWO = ConsumerId(1), ConsumerId(2)


def of_version(bench: SimulatedBench, version: int) -> DeploymentTemplate:
    """The bench's plan with an image and a settings map of this version, kept in a template."""
    named = {"image": f"localhost/python:{version}", "settings_config_map": f"map-{version}"}
    bench.plan = replace(bench.plan, settings=bench.plan.settings.model_copy(update=named))
    return DeploymentTemplate(version, pod_plan=plan_as_values(bench.plan))


def path_of(bench: SimulatedBench, consumer: ConsumerId) -> str:
    name = f"{GROUP}-consumer-{consumer}"
    return f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/{name}"


def made_of(bench: SimulatedBench, consumer: ConsumerId) -> tuple[str, str]:
    """The image and the settings map of a consumer's pods."""
    deployment: Any = bench.cluster.must("GET", path_of(bench, consumer))
    pod = deployment["spec"]["template"]["spec"]
    (settings,) = (one for one in pod["volumes"] if one["name"] == "settings")
    return pod["containers"][0]["image"], settings["configMap"]["name"]


def upgraded(bench: SimulatedBench) -> KubernetesDeployment:
    bench.backend.create(ONE, of_version(bench, 1))
    newest = of_version(bench, 2)
    bench.backend = bench.another()
    bench.backend.list_consumers()
    bench.backend.create(TWO, newest)
    assert made_of(bench, ONE) == ("localhost/python:1", "map-1")
    assert made_of(bench, TWO) == ("localhost/python:2", "map-2")
    return bench.backend


def repaired(backend: KubernetesDeployment, what: str) -> None:
    until(lambda: any(what in one.explanation for one in backend.repair()), what)


def test_a_consumer_that_was_deleted_comes_back_as_its_own_version(bench: SimulatedBench) -> None:
    """With its image and its settings map, though the controller's own are newer."""
    backend = upgraded(bench)
    bench.cluster.must("DELETE", path_of(bench, ONE))
    repaired(backend, "made again")
    assert made_of(bench, ONE) == ("localhost/python:1", "map-1")


def test_a_consumer_that_was_scaled_keeps_its_pod(bench: SimulatedBench) -> None:
    """Only the number of replicas changes: another pod template would restart it as another."""
    backend = upgraded(bench)
    before = bench.cluster.must("GET", path_of(bench, ONE))["spec"]["template"]
    scaled = {"spec": {"replicas": 0}}
    bench.cluster.must("PATCH", path_of(bench, ONE), scaled, "merge-patch+json")
    repaired(backend, "scaled back")
    after = bench.cluster.must("GET", path_of(bench, ONE))["spec"]
    assert (after["replicas"], after["template"]) == (1, before)


def test_a_roll_back_makes_the_former_pods(bench: SimulatedBench) -> None:
    """The former template under a new number is deployed as before."""
    former = of_version(bench, 1)
    of_version(bench, 2)
    bench.backend = bench.another()
    bench.backend.create(ONE, replace(former, version=3))
    assert made_of(bench, ONE) == ("localhost/python:1", "map-1")
    assert bench.backend.list_consumers()[ONE].version == 3
