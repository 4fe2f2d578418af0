"""Values that change one thing: each is seen in what the chart renders, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.kubernetes.helm import of_kind, rendered, template

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
KEY_PASSWORD = "PENSTOCK_KAFKA__SSL_KEY_PASSWORD"  # noqa: S105 -- the name of a variable


def pod_specs(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Those of the chart by Deployment, and the consumers'."""
    deployments = of_kind(objects, "Deployment")
    found = {name: one["spec"]["template"]["spec"] for name, one in deployments.items()}
    (config_map,) = of_kind(objects, "ConfigMap").values()
    return {**found, "consumer": yaml.safe_load(config_map["data"]["pod-template.yaml"])["spec"]}


def test_name_override_is_in_names_and_selectors(helm: Path) -> None:
    """`<release>-<name>`; pods are still found by their Deployments and budgets."""
    chosen = ("nameOverride=sluice", "serviceMonitor.enabled=true")
    objects = rendered(helm, settings=chosen, release="night")
    own = [one for one in objects if one["kind"] != "ConfigMap"]
    assert {one["metadata"]["name"].startswith("night-sluice") for one in own} == {True}
    for one in of_kind(objects, "Deployment").values():
        wanted = one["spec"]["selector"]["matchLabels"]
        assert wanted["app.kubernetes.io/name"] == "sluice"
        assert wanted.items() <= one["spec"]["template"]["metadata"]["labels"].items()
    (config_map,) = of_kind(objects, "ConfigMap").values()
    kubernetes = yaml.safe_load(config_map["data"]["penstock.yaml"])["kubernetes"]
    assert kubernetes["owner"] in of_kind(objects, "Deployment")
    assert kubernetes["settings_config_map"] == config_map["metadata"]["name"]
    (monitor,) = of_kind(objects, "ServiceMonitor").values()
    wanted = monitor["spec"]["selector"]["matchLabels"]
    services = of_kind(objects, "Service").values()
    assert len([one for one in services if wanted.items() <= one["metadata"]["labels"].items()]) > 1


def test_a_name_override_that_the_release_has_is_not_repeated(helm: Path) -> None:
    """The release `sluice-night` stays that."""
    objects = rendered(helm, settings=("nameOverride=sluice",), release="sluice-night")
    assert "sluice-night-controller" in of_kind(objects, "Deployment")


def test_the_password_of_the_tls_key_comes_from_its_secret(helm: Path) -> None:
    """To every pod that asks Kafka, by the key that is named; a role's own key wins."""
    chosen = (
        "kafka.existingSecret=kafka",
        "kafka.tlsKeyPasswordKey=key-password",
        "kafka.passwordKey=",
        "monitor.kafka.tlsKeyPasswordKey=other",
    )
    found = {}
    for name, spec in pod_specs(rendered(helm, settings=chosen)).items():
        for one in [*spec.get("initContainers", []), *spec["containers"]]:
            given = {variable["name"]: variable for variable in one.get("env", [])}
            assert "PENSTOCK_KAFKA__SASL_PASSWORD" not in given
            found[name, one["name"]] = given[KEY_PASSWORD]["valueFrom"]["secretKeyRef"]
    common = {"name": "kafka", "key": "key-password"}
    assert found.pop(("penstock-monitor", "monitor")) == {"name": "kafka", "key": "other"}
    assert found == {
        ("penstock-controller", "topics"): common,
        ("penstock-controller", "controller"): common,
        ("consumer", "consumer"): common,
    }


def test_without_its_key_no_password_of_the_tls_key_is_asked_for(helm: Path) -> None:
    """The default."""
    assert KEY_PASSWORD not in template(helm, settings=("kafka.existingSecret=kafka",)).stdout


def test_the_time_for_a_scrape_is_the_one_given(helm: Path) -> None:
    """Prometheus refuses one that is longer than the interval; the default is shorter."""
    for chosen, expected in (((), "10s"), (("serviceMonitor.scrapeTimeout=3s",), "3s")):
        objects = rendered(helm, settings=("serviceMonitor.enabled=true", *chosen))
        (monitor,) = of_kind(objects, "ServiceMonitor").values()
        (endpoint,) = monitor["spec"]["endpoints"]
        assert (endpoint["scrapeTimeout"], endpoint["interval"]) == (expected, "15s")
    refused = template(helm, settings=("serviceMonitor.scrapeTimeout=soon",))
    assert refused.returncode != 0


def test_sparks_scratch_volume_has_the_size_given(helm: Path) -> None:
    """The server's alone: it is where Spark spills."""
    chosen = ("spark.connect.enabled=true", "spark.connect.scratchSize=7Gi")
    for name, spec in pod_specs(rendered(helm, settings=chosen)).items():
        scratch = [one for one in spec["volumes"] if one["name"] == "scratch"]
        limits = [one["emptyDir"].get("sizeLimit") for one in scratch]
        expected = {"penstock-spark": ["7Gi"], "consumer": []}.get(name, [None])
        assert limits == expected, name


def test_how_volumes_get_their_group_is_the_one_given(helm: Path) -> None:
    """In every pod, the consumers' too; what keeps a pod safe stays beside it."""
    chosen = ("podSecurityContext.fsGroupChangePolicy=Always", "spark.connect.enabled=true")
    specs = pod_specs(rendered(helm, settings=chosen))
    assert {"consumer", "penstock-spark", "penstock-monitor"} <= specs.keys()
    for name, spec in specs.items():
        context = spec["securityContext"]
        assert context["fsGroupChangePolicy"] == "Always", name
        assert (context["fsGroup"], context["runAsNonRoot"]) == (10001, True), name
