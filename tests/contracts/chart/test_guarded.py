"""What the chart renders against drains, strangers on the network and half an upgrade."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.kubernetes.helm import containers, of_kind, rendered, template
from penstock.cli.options import calibrated_topics
from penstock.deployment.interface import DeploymentTemplate
from penstock.deployment.kubernetes.core.manifests import PodPlan, deployment_manifest
from penstock.model import ConsumerId
from penstock.settings.sections import KubernetesSettings

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
CONNECT = Path(__file__).parent / "values" / "connect.yaml"
Objects = list[dict[str, Any]]


def consumer_labels(group: str = "penstock") -> dict[str, str]:
    settings = KubernetesSettings.model_validate({"image": "x:1"})
    made = deployment_manifest(PodPlan(group, settings), ConsumerId(1), DeploymentTemplate())
    return dict(made["spec"]["template"]["metadata"]["labels"])


def pod_labels(objects: Objects) -> dict[str, dict[str, str]]:
    own = of_kind(objects, "Deployment")
    found = {n: one["spec"]["template"]["metadata"]["labels"] for n, one in own.items()}
    return {**found, "a consumer": consumer_labels()}


def chosen_by(selector: dict[str, Any], pods: dict[str, dict[str, str]]) -> list[str]:
    wanted = selector["matchLabels"]
    return [name for name, labels in pods.items() if wanted.items() <= labels.items()]


def test_every_pod_has_one_policy_for_who_reaches_it(helm: Path) -> None:
    """Only the health port is open, and on the Spark Connect server its own, for consumers."""
    objects = rendered(helm, CONNECT)
    pods = pod_labels(objects)
    guarded = {}
    for policy in of_kind(objects, "NetworkPolicy").values():
        spec = policy["spec"]
        assert spec["policyTypes"] == ["Ingress"]
        (pod,) = chosen_by(spec["podSelector"], pods)
        (rule,) = spec["ingress"]
        (port,) = rule["ports"]
        guarded[pod] = port["port"]
        assert ("from" in rule) is (pod == "penstock-spark")
    health = dict.fromkeys(("penstock-controller", "penstock-monitor", "a consumer"), "health")
    assert guarded == {**health, "penstock-spark": "connect"}
    off = rendered(helm, CONNECT, settings=["networkPolicy.enabled=false"])
    assert set(of_kind(off, "NetworkPolicy")) == {"penstock-spark"}


def test_where_pods_connect_to_is_limited_when_the_values_say_so(
    helm: Path, tmp_path: Path
) -> None:
    """Name servers and our Spark Connect server are added to what is named."""
    to_brokers = {"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "ports": [{"port": 9092}]}
    scraper = {"namespaceSelector": {"matchLabels": {"team": "metrics"}}}
    values = tmp_path / "values.yaml"
    policy = {"egress": [to_brokers], "healthFrom": [scraper]}
    values.write_text(yaml.safe_dump({"networkPolicy": policy}), encoding="utf-8")
    policies = of_kind(rendered(helm, CONNECT, values), "NetworkPolicy")
    for name, one in policies.items():
        spec = one["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"], name
        assert to_brokers in spec["egress"], name
        assert {port["port"] for port in spec["egress"][0]["ports"]} == {53}
        to_spark = [
            r for r in spec["egress"] if {"port": "connect", "protocol": "TCP"} in r["ports"]
        ]
        assert bool(to_spark) is (name == "penstock-consumer")
        if name != "penstock-spark":
            assert spec["ingress"][0]["from"] == [scraper]


def test_a_drain_takes_one_consumer_at_a_time(helm: Path) -> None:
    """One budget for all consumers of the group; roles with one pod have none to stop a drain."""
    objects = rendered(helm, CONNECT, settings=["controller.standby=false"])
    (budget,) = of_kind(objects, "PodDisruptionBudget").values()
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert chosen_by(budget["spec"]["selector"], pod_labels(objects)) == ["a consumer"]
    two = rendered(helm, settings=["controller.standby=true"])
    budgets = of_kind(two, "PodDisruptionBudget")
    assert set(budgets) == {"penstock-controller", "penstock-consumers"}
    of_controllers = budgets["penstock-controller"]["spec"]
    assert chosen_by(of_controllers["selector"], pod_labels(two)) == ["penstock-controller"]
    off = ["consumer.disruptionBudget.enabled=false", "controller.disruptionBudget.enabled=false"]
    assert not of_kind(rendered(helm, settings=off), "PodDisruptionBudget")
    part = rendered(helm, settings=["consumer.disruptionBudget.maxUnavailable=20%"])
    spec = of_kind(part, "PodDisruptionBudget")["penstock-consumers"]["spec"]
    assert spec["maxUnavailable"] == "20%"
    none = template(helm, settings=["consumer.disruptionBudget.maxUnavailable=0"])
    assert none.returncode != 0, "a budget of none would stop every drain"


def test_the_settings_map_is_named_by_its_content(helm: Path) -> None:
    """Another content is another map; every pod and the controller's own settings name it."""

    def map_of(*values: str) -> dict[str, Any]:
        objects = rendered(helm, CONNECT, settings=values)
        (found,) = of_kind(objects, "ConfigMap").values()
        name = found["metadata"]["name"]
        settings = yaml.safe_load(found["data"]["penstock.yaml"])
        assert settings["kubernetes"]["settings_config_map"] == name
        for one in of_kind(objects, "Deployment").values():
            volumes = one["spec"]["template"]["spec"]["volumes"]
            assert {"name": "settings", "configMap": {"name": name}} in volumes
        return found

    first = map_of()
    assert first["immutable"] is True
    names = [
        first["metadata"]["name"],
        map_of("settings.controller.consumers_max=7")["metadata"]["name"],
        map_of("consumer.nodeSelector.disk=fast")["metadata"]["name"],
        map_of("image.tag=other", "thinImage.tag=other")["metadata"]["name"],
    ]
    assert len(set(names)) == 4
    assert map_of("controller.resources.limits.cpu=2")["metadata"]["name"] == names[0]
    annotations = first["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/sync-options"] == "Prune=false"


def test_what_a_calibration_found_reaches_the_controllers(helm: Path) -> None:
    """As the program takes it, so that the first plan does not rest on an assumption."""
    given = [r"controller.calibrated.shop\.orders=20MB/s", "controller.calibrated.clicks=800kB/s"]
    objects = rendered(helm, settings=given)
    (container,) = containers(of_kind(objects, "Deployment")["penstock-controller"])[-1:]
    *command, first_flag, first, second_flag, second = container["command"]
    assert command == ["penstock", "controller", "--standby"]
    assert {first_flag, second_flag} == {"--calibrated"}
    assert calibrated_topics([first, second]) == {"clicks": 8e5, "shop.orders": 2e7}


def test_a_standby_needs_no_volume(helm: Path) -> None:
    """Two controllers that wait for each other, updated one by one, and no claim of their own."""
    objects = rendered(helm)
    spec = of_kind(objects, "Deployment")["penstock-controller"]["spec"]
    (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == spec["selector"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spec["replicas"] == 2
    assert spec["strategy"]["type"] == "RollingUpdate"
    (container,) = containers(of_kind(objects, "Deployment")["penstock-controller"])[-1:]
    assert container["command"] == ["penstock", "controller", "--standby"]
    (state,) = (one for one in spec["template"]["spec"]["volumes"] if one["name"] == "state")
    assert state == {"name": "state", "emptyDir": {}}
    assert "penstock-controller" not in of_kind(objects, "PersistentVolumeClaim")
