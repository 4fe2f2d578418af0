"""The live page in the chart: nothing unless asked, then never without a token and TLS."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.kubernetes.helm import containers, of_kind, rendered, template
from penstock.settings import load_settings

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
ASKED = ("page.enabled=true", "page.existingSecret=page-secret")
WITH_TLS = (*ASKED, "page.tls.existingSecret=page-tls")
BEHIND_PROXY = (*ASKED, "page.behindProxy=true", "page.allowedHosts={shop.example}")


def page_container(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (container,) = containers(of_kind(objects, "Deployment")["penstock-page"])
    return container


def page_volumes(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    spec = of_kind(objects, "Deployment")["penstock-page"]["spec"]["template"]["spec"]
    return list(spec["volumes"])


def test_by_default_there_is_no_page(helm: Path) -> None:
    """Who opens a port says so."""
    assert not [one for one in rendered(helm) if one["metadata"]["name"].endswith("-page")]


@pytest.mark.parametrize(
    ("settings", "explanation"),
    [
        (("page.enabled=true", "page.behindProxy=true"), "page.existingSecret is missing"),
        (ASKED, "the page needs TLS"),
    ],
)
def test_without_token_or_tls_the_chart_says_what_is_missing(
    helm: Path, settings: tuple[str, ...], explanation: str
) -> None:
    """The pod would end with the same error; this one comes before anything is installed."""
    done = template(helm, settings=settings)
    assert done.returncode != 0
    assert explanation in done.stderr


@pytest.mark.parametrize(("chosen", "has_tls"), [(WITH_TLS, True), (BEHIND_PROXY, False)])
def test_the_page_starts_with_what_it_is_given(
    helm: Path, chosen: tuple[str, ...], *, has_tls: bool
) -> None:
    """Its variables are settings that the program accepts; probes speak as it does."""
    container = page_container(rendered(helm, settings=chosen))
    given = {one["name"]: one for one in container["env"]}
    token = given.pop("PENSTOCK_PAGE__TOKEN")["valueFrom"]["secretKeyRef"]
    assert token == {"name": "page-secret", "key": "token"}
    given.pop("PENSTOCK_SETTINGS")
    environment = {name: one["value"] for name, one in given.items()}
    page = load_settings(environment=environment).settings.page
    assert (page.host, page.port) == ("0.0.0.0", container["ports"][0]["containerPort"])  # noqa: S104 -- in a pod
    assert bool(page.certificate_file and page.key_file) == has_tls
    assert page.behind_proxy != has_tls
    names = json.loads(environment["PENSTOCK_PAGE__ALLOWED_HOSTS"])
    assert names[:3] == ["penstock-page", "penstock-page.penstock", "penstock-page.penstock.svc"]
    assert ("shop.example" in names) != has_tls
    scheme = "HTTPS" if has_tls else "HTTP"
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["scheme"] == scheme


def test_only_the_pages_port_is_open_and_its_service_finds_it(helm: Path) -> None:
    """The policy and the service name the port of the container."""
    objects = rendered(helm, settings=WITH_TLS)
    labels = of_kind(objects, "Deployment")["penstock-page"]["spec"]["template"]["metadata"][
        "labels"
    ]
    service = of_kind(objects, "Service")["penstock-page"]["spec"]
    policy = of_kind(objects, "NetworkPolicy")["penstock-page"]["spec"]
    assert service["selector"].items() <= labels.items()
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    (rule,) = policy["ingress"]
    names = [one["name"] for one in page_container(objects)["ports"]]
    assert [one["port"] for one in rule["ports"]] == names == [service["ports"][0]["targetPort"]]


def test_it_looks_at_the_lake_and_cannot_change_it(helm: Path) -> None:
    """The consumers' claim, where the settings say that the lake is; mounted read-only."""
    objects = rendered(helm, settings=(*WITH_TLS, "lake.persistence.mountPath=/the/lake"))
    (config_map,) = of_kind(objects, "ConfigMap").values()
    root = yaml.safe_load(config_map["data"]["penstock.yaml"])["lake"]["root"]
    (mount,) = [one for one in page_container(objects)["volumeMounts"] if one["name"] == "lake"]
    assert mount == {"name": "lake", "mountPath": root, "readOnly": True}
    assert root == "/the/lake"
    consumer = yaml.safe_load(config_map["data"]["pod-template.yaml"])["spec"]["volumes"]
    assert [one for one in page_volumes(objects) if one["name"] == "lake"] == [
        one for one in consumer if one["name"] == "lake"
    ]


def test_a_lake_that_is_no_volume_is_not_mounted(helm: Path) -> None:
    """An object store: its keys come as all variables do."""
    chosen = (
        *WITH_TLS,
        "lake.persistence.enabled=false",
        "settings.lake.root=s3://lake",
        "page.extraEnvFrom[0].secretRef.name=may-read",
    )
    objects = rendered(helm, settings=chosen)
    container = page_container(objects)
    assert not [one for one in page_volumes(objects) if one["name"] == "lake"]
    assert not [one for one in container["volumeMounts"] if one["name"] == "lake"]
    assert container["envFrom"] == [{"secretRef": {"name": "may-read"}}]
