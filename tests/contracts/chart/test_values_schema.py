"""The values schema is complete and refuses wrong values."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.kubernetes.helm import CHART, template

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm
SCHEMA = CHART / "values.schema.json"
# Empty on purpose: the schema describes their content.
OPEN = {"consumer.image", "consumer.resources", "controller.kafka", "monitor.kafka", "global"}
OPEN |= {"consumer.kafka", "page.kafka", "consumer.podTemplate", "settings", "podSecurityContext"}


def test_every_value_has_a_default_and_a_rule() -> None:
    """values.yaml and the schema have the same names."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    _compare(schema, schema, values, "")


def _compare(whole: dict[str, Any], schema: dict[str, Any], values: Any, path: str) -> None:
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    if path in OPEN or not isinstance(values, dict) or "properties" not in schema:
        return
    optional = {"global"} if not path else {"ephemeral-storage"}
    assert schema["additionalProperties"] is False, path
    assert set(schema["properties"]) - optional == set(values) - optional, path
    for name, below in values.items():
        inner = f"{path}.{name}" if path else name
        _compare(whole, schema["properties"][name], below, inner)


@pytest.mark.parametrize(
    ("value", "explanation"),
    [
        ("imagee.tag=1", "additional properties 'imagee' not allowed"),
        ("image.tag=-x", "/image/tag"),
        ("image.digest=sha256:short", "/image/digest"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("controller.replicas=2", "additional properties 'replicas' not allowed"),
        ("controller.resources.limits=null", "missing property 'limits'"),
        ("controller.resources.limits.memory=much", "/controller/resources/limits/memory"),
        ("controller.calibrated.orders=20", "/controller/calibrated/orders"),
        ("controller.calibrated.orders=fast", "/controller/calibrated/orders"),
        ("controller.calibrated.or/ders=20MB/s", "invalid propertyName 'or/ders'"),
        ("consumer.resources.limits.cpu=1", "/consumer/resources"),
        ("consumer.gracePeriod=60", "/consumer/gracePeriod"),
        ("consumer.volume.accessMode=ReadWriteMany", "/consumer/volume/accessMode"),
        ("podSecurityContext.runAsUser=0", "/podSecurityContext/runAsUser"),
        ("podSecurityContext.runAsNonRoot=false", "/podSecurityContext/runAsNonRoot"),
        ("spark.connect.enabled=maybe", "/spark/connect/enabled"),
        ("spark.connect.port=80", "/spark/connect/port"),
        ("extraEnv[0].value=x", "missing property 'name'"),
        ("settings.kafk.bootstrap_servers=x:1", "additional properties 'kafk' not allowed"),
        ("settings.kafka.bootstrap_servers=nobody", "/settings/kafka/bootstrap_servers"),
        ("settings.kafka.sasl_password=x", "additional properties 'sasl_password' not allowed"),
        (r"settings.kafka.properties.sasl\.password=x", "invalid propertyName 'sasl.password'"),
        ("settings.lake.storage_options.AWS_SECRET_ACCESS_KEY=x", "AWS_SECRET_ACCESS_KEY"),
        (r"settings.spark.options.spark\.hadoop\.fs\.s3a\.access\.key=x", "propertyName"),
        ("settings.controller.consumers_max=-1", "/settings/controller/consumers_max"),
        ("settings.kubernetes.volume_access_mode=Often", "/settings/kubernetes"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_made(
    helm: Path, value: str, explanation: str
) -> None:
    """Helm refuses a wrong value with its place and the reason."""
    done = template(helm, settings=[value])
    assert done.returncode != 0
    assert explanation in done.stderr
    assert "values don't meet the specifications" in done.stderr
