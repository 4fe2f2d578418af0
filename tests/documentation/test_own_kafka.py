"""The settings of docs/your-own-kafka.md, tried on a broker with these ways in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from documents.examples import Example, examples_in
from kit.generated_files import ROOT
from kit.kafka.secured_broker import SecuredBroker, secured_broker
from kit.program import penstock
from penstock.kafka_io.administration import Administration

pytestmark = [pytest.mark.broker, pytest.mark.timeout(180)]
PAGE = ROOT / "docs" / "your-own-kafka.md"
SERVERS = "broker-1.example:{port},broker-2.example:{port}"


@pytest.fixture(scope="module")
def broker(broker_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured"), user="penstock") as running:
        Administration(running.kafka.settings).create_topic("orders", partitions=2)
        yield running


def the_example(*with_text: str, without: str = "nothing") -> Example:
    found = [
        one
        for one in examples_in(ROOT, PAGE)
        if one.mark == "settings"
        and all(text in one.text for text in with_text)
        and without not in one.text
    ]
    assert len(found) == 1, with_text
    return found[0]


def commands() -> list[str]:
    (block,) = (one for one in examples_in(ROOT, PAGE) if one.mark == "run: as check-own-kafka")
    return block.commands


@pytest.mark.parametrize(
    ("listener", "port", "with_text", "without"),
    [
        ("PLAINTEXT", 9092, ("9092",), "nothing"),
        ("TLS", 9093, ("protocol: SSL",), "ssl.key.location"),
        ("MUTUAL", 9093, ("protocol: SSL", "ssl.key.location"), "nothing"),
        ("LOGIN", 9094, ("SASL_SSL",), "nothing"),
    ],
)
def test_the_documented_settings_reach_the_broker(
    broker: SecuredBroker,
    tmp_path: Path,
    listener: str,
    port: int,
    with_text: tuple[str, ...],
    without: str,
) -> None:
    """With only addresses and folders replaced, doctor gets through and speeds are measured."""
    address = broker.address.get(listener, broker.kafka.bootstrap_servers)
    text = the_example(*with_text, without=without).text
    assert SERVERS.format(port=port) in text
    text = text.replace(SERVERS.format(port=port), address)
    text = text.replace("/etc/penstock", str(broker.folder))
    (tmp_path / "penstock.yaml").write_text(text, encoding="utf-8")
    doctor, speeds = commands()
    checked = penstock(*doctor.split()[1:], "-o", "json", cwd=tmp_path)
    assert '"check": "broker"' in checked.stdout, checked.stderr
    assert "does not exist: run `penstock topics create`" in checked.stdout
    assert checked.returncode == 1, "the control topics are missing, and nothing else"
    measured = penstock(*speeds.split()[1:], cwd=tmp_path)
    assert measured.returncode == 0, measured.stderr
    assert "orders" in measured.stdout


def test_a_wrong_password_is_told(broker: SecuredBroker, tmp_path: Path) -> None:
    """Who is not let in gets an error and not an empty answer."""
    text = the_example("SASL_SSL").text.replace(SERVERS.format(port=9094), broker.address["LOGIN"])
    wrong = tmp_path / "kafka-password"
    wrong.write_text("another", encoding="utf-8")
    text = text.replace("/etc/penstock/kafka-password", str(wrong))
    text = text.replace("/etc/penstock", str(broker.folder))
    (tmp_path / "penstock.yaml").write_text(text, encoding="utf-8")
    done = penstock("topics", "check", cwd=tmp_path)
    assert done.returncode == 5, done.stdout + done.stderr
    assert "refused the login of user penstock" in done.stderr
