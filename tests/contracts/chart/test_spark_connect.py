"""The Spark Connect server of the chart: its token is in a Secret, and it has TLS."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.kubernetes.helm import of_kind, rendered, template

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
CONNECT = "spark.connect.enabled=true"
TOKEN = {
    "name": "PENSTOCK_SPARK__TOKEN",
    "valueFrom": {"secretKeyRef": {"name": "penstock-spark", "key": "token"}},
}


def parts_of(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pod specs by component, the consumers' among them."""
    deployments = of_kind(objects, "Deployment")
    found = {name: one["spec"]["template"]["spec"] for name, one in deployments.items()}
    (config_map,) = of_kind(objects, "ConfigMap").values()
    return {**found, "consumer": yaml.safe_load(config_map["data"]["pod-template.yaml"])["spec"]}


def test_server_and_consumers_alone_get_the_token(helm: Path) -> None:
    """From a Secret that the operator makes; consumers get no private key."""
    specs = parts_of(rendered(helm, settings=[CONNECT]))
    with_token = {name for name, spec in specs.items() if TOKEN in spec["containers"][0]["env"]}
    assert with_token == {"penstock-spark", "consumer"}
    files = {
        name: [item["key"] for item in volume["secret"]["items"]]
        for name, spec in specs.items()
        for volume in spec["volumes"]
        if volume["name"] == "spark-tls"
    }
    assert files == {"penstock-spark": ["tls.crt", "tls.key"], "consumer": ["ca.crt"]}


def test_a_secret_of_another_name_is_used(helm: Path) -> None:
    """One for the token, and another for the files, as cert-manager makes them."""
    names = ["spark.connect.existingSecret=mine", "spark.connect.tls.existingSecret=made"]
    specs = parts_of(rendered(helm, settings=[CONNECT, *names]))
    for name in ("penstock-spark", "consumer"):
        (token,) = [
            one
            for one in specs[name]["containers"][0]["env"]
            if one["name"] == "PENSTOCK_SPARK__TOKEN"
        ]
        assert token["valueFrom"]["secretKeyRef"]["name"] == "mine"
        (volume,) = [one for one in specs[name]["volumes"] if one["name"] == "spark-tls"]
        assert volume["secret"]["secretName"] == "made"


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ([], "settings.spark.insecure=true"),
        (["settings.spark.insecure=true"], ""),
        (["settings.spark.insecure=true", "kafka.existingSecret=kafka"], "Kafka password"),
    ],
)
def test_a_server_without_tls_must_be_meant(helm: Path, settings: list[str], refusal: str) -> None:
    """And no password of Kafka crosses to it."""
    done = template(helm, settings=[CONNECT, "spark.connect.tls.enabled=false", *settings])
    assert (done.returncode != 0) == bool(refusal)
    assert refusal in done.stderr


def test_without_a_server_there_is_no_token(helm: Path) -> None:
    """Consumers with a Spark of their own need none."""
    assert "SPARK__TOKEN" not in template(helm).stdout
