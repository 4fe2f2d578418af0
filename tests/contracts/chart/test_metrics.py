"""What the chart gives the Prometheus operator: nothing unless asked, then every pod and rule."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from documents.alert_rules import ALERTS, rules_file
from kit.kubernetes.helm import of_kind, rendered, template
from kit.promtool import promtool
from penstock.deployment.kubernetes.core.names import all_labels
from penstock.model import ConsumerId

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
BOTH = ("serviceMonitor.enabled=true", "prometheusRule.enabled=true")


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def test_by_default_there_is_none_of_it(helm: Path) -> None:
    """A cluster without the operator would refuse its kinds."""
    kinds = {one["kind"] for one in rendered(helm)}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "Service"}


@pytest.mark.parametrize("extra", [(), ("spark.connect.enabled=true",)])
def test_every_pod_of_the_group_is_scraped_once(helm: Path, extra: tuple[str, ...]) -> None:
    """Controller, monitor and consumers by one of two services each; another group by none."""
    objects = rendered(helm, settings=(*BOTH, *extra))
    (monitor,) = of_kind(objects, "ServiceMonitor").values()
    wanted = monitor["spec"]["selector"]["matchLabels"]
    services = [
        one
        for one in of_kind(objects, "Service").values()
        if selects(wanted, one["metadata"]["labels"])
    ]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("health", "/metrics")
    pods = {
        name: one["spec"]["template"]["metadata"]["labels"]
        for name, one in of_kind(objects, "Deployment").items()
    }
    pods["consumer"] = all_labels("penstock", ConsumerId(3))
    pods["other group"] = all_labels("other", ConsumerId(3))
    found = {
        name: sum(selects(one["spec"]["selector"], labels) for one in services)
        for name, labels in pods.items()
    }
    assert found.pop("other group") == 0
    assert set(found.values()) == {1}
    for service in services:
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["ports"][0]["targetPort"] == endpoint["port"]


def test_the_rules_are_those_of_the_definitions(helm: Path, tmp_path: Path) -> None:
    """Unchanged, templates of annotations included; promtool accepts them."""
    objects = rendered(helm, settings=BOTH)
    (rule,) = of_kind(objects, "PrometheusRule").values()
    assert rule["spec"] == rules_file()
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(rule["spec"]))
    done = promtool("check", "rules", file)
    assert (done.returncode, f"{len(ALERTS)} rules found" in done.stdout) == (0, True), done.stderr


def test_runbooks_can_be_elsewhere(helm: Path) -> None:
    """Every annotation then names the given address, with its section."""
    address = "https://example.com/runbooks"
    objects = rendered(helm, settings=(*BOTH, f"prometheusRule.runbooks={address}"))
    (rule,) = of_kind(objects, "PrometheusRule").values()
    found: list[dict[str, Any]] = rule["spec"]["groups"][0]["rules"]
    assert [one["annotations"]["runbook_url"] for one in found] == [
        f"{address}#{one.anchor}" for one in ALERTS
    ]


@pytest.mark.parametrize(
    "value",
    ["serviceMonitor.interval=often", "prometheusRule.runbooks=docs", "serviceMonitor.on=true"],
)
def test_wrong_values_are_refused(helm: Path, value: str) -> None:
    """By the schema, before anything is made."""
    assert template(helm, settings=(value,)).returncode != 0
