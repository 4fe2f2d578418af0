"""`penstock study consumer --topic` on a broker that wants a login, beside a group's variables."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.kafka.secured_broker import PASSWORD, SecuredBroker, secured_broker
from kit.lake.lake import produce
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.pipeline.connect_server import ConnectServer

pytestmark = [
    pytest.mark.usefixtures("kit_on_the_path"),
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(300),
]
WHERE = "kit.consumer.transformations"
USER = "penny"
RECORDS = 150_000


@pytest.fixture(scope="module")
def broker(broker_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured"), user=USER) as running:
        Administration(running.kafka.settings).create_topic("orders", partitions=1)
        produce(running.kafka.settings, "orders", {0: [b"x" * 1_000] * RECORDS})
        yield running


@pytest.mark.parametrize("secret", ["variable", "file"])
def test_the_study_writes_only_where_it_chose(
    broker: SecuredBroker, spark_server: ConnectServer, tmp_path: Path, secret: str
) -> None:
    """It logs in; the group's lake, prefix and transformation are only in its variables."""
    lake = tmp_path / "lake"
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "ssl.ca.location": str(broker.folder / "ca.pem"),
    }
    password = {
        "variable": {"PENSTOCK_KAFKA__SASL_PASSWORD": PASSWORD},
        "file": {"PENSTOCK_KAFKA__SASL_PASSWORD_FILE": str(broker.folder / "kafka-password")},
    }
    environment = {
        "PENSTOCK_KAFKA__BOOTSTRAP_SERVERS": broker.address["LOGIN"],
        "PENSTOCK_KAFKA__PROPERTIES": json.dumps(properties),
        "PENSTOCK_LAKE__ROOT": str(lake),
        "PENSTOCK_LAKE__TABLES": json.dumps({"orders": {"transformation": f"{WHERE}:raises"}}),
        "PENSTOCK_TOPICS__PREFIX": "real",
        "PENSTOCK_SPARK__MASTER": spark_server.master,
        **password[secret],
    }
    chosen = ("--topic", "orders", "--transformation", f"{WHERE}:decode_all", "-o", "json")
    done = penstock("study", "consumer", *chosen, environment=environment, timeout_s=800)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["whole"], found
    assert found["records"] == RECORDS
    assert not lake.exists()
    topics = Administration(broker.kafka.settings).cluster().partition_counts
    assert [name for name in topics if name.startswith(("real", "study"))] == []


def test_a_topic_that_is_not_there_is_told_with_near_names(broker: SecuredBroker) -> None:
    """At once, before a Spark server is started."""
    at = ("--bootstrap-server", broker.kafka.bootstrap_servers)
    done = penstock("study", "consumer", "--topic", "order", *at)
    assert done.returncode != 0
    assert "Kafka has no topic order." in done.stderr
    assert "There are orders." in done.stderr
    assert "Spark" not in done.stderr
