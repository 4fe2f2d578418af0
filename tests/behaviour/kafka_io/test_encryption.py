"""A connection that leaves the machine without TLS must be meant."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.cli.doctor import _encryption
from penstock.errors import SettingsError
from penstock.kafka_io.client_properties import (
    java_properties,
    kafka_python_properties,
    librdkafka_properties,
)
from penstock.settings import Settings
from penstock.settings.secret import Secret
from penstock.settings.sections import KafkaSettings

SASL = {"sasl.mechanism": "PLAIN", "sasl.username": "penstock"}


def kafka(servers: str, protocol: str = "PLAINTEXT", *, insecure: bool = False) -> KafkaSettings:
    login = SASL if protocol.startswith("SASL") else {}
    return KafkaSettings(
        bootstrap_servers=servers,
        properties={"security.protocol": protocol, **login},
        insecure=insecure,
        sasl_password=Secret("word") if login else None,
    )


@pytest.mark.parametrize("made", [librdkafka_properties, kafka_python_properties, java_properties])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_a_far_broker_without_tls_is_refused(made: Callable[[Any], Any], protocol: str) -> None:
    """For each of the three client libraries, with what to set instead."""
    far = kafka("127.0.0.1:9092,broker.example:9092,10.0.0.5:9092,a.localhost:9092", protocol)
    with pytest.raises(SettingsError) as refused:
        made(far)
    assert refused.value.message == (
        "The connection to broker.example:9092, 10.0.0.5:9092, a.localhost:9092 would not be "
        "encrypted "
        f"(security.protocol {protocol})."
    )
    assert "kafka.insecure: true" in refused.value.remedy
    assert refused.value.exit_code == 3
    made(far.model_copy(update={"insecure": True}))


@pytest.mark.parametrize(
    "host",
    [
        "localhost.evil.example",
        "localhost.",
        "localhost-1",
        "127.0.0.1.evil.example",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0.0.0.0",  # noqa: S104 -- an address to connect to
        "128.0.0.1",
        "[::]",
        "[::2]",
        "[::ffff:10.0.0.5]",
        "[::1].evil.example",
        "\uff11\uff12\uff17.0.0.1",
        "localho\u017ft",
    ],
)
def test_what_only_looks_like_the_loopback_is_far(host: str) -> None:
    """Alone, and beside addresses that are the loopback."""
    for servers in (f"{host}:9092", f"localhost:9092,{host}:9092,[::1]:9092"):
        assert kafka(servers).unencrypted_servers == [f"{host}:9092"]


@pytest.mark.parametrize(
    "given",
    [
        kafka("127.0.0.1:9092"),
        kafka("127.8.8.8:9092,localhost:9093,[::1]:9094"),
        kafka("127.0.0.1:9092", "SASL_PLAINTEXT"),
        kafka("broker.example:9093", "SSL"),
        kafka("broker.example:9094", "SASL_SSL"),
    ],
    ids=["loopback", "all names of it", "loopback with a login", "TLS", "TLS with a login"],
)
def test_what_stays_on_the_machine_or_is_encrypted_needs_no_word(given: KafkaSettings) -> None:
    """It works as it did."""
    assert librdkafka_properties(given)["bootstrap.servers"] == given.bootstrap_servers


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (kafka("127.0.0.1:9092"), "PLAINTEXT, on this machine only"),
        (kafka("broker.example:9093", "SSL"), "SSL: encrypted"),
        (
            kafka("broker.example:9092", insecure=True),
            "WARNING: not encrypted, as kafka.insecure says (PLAINTEXT to broker.example:9092)",
        ),
        (
            kafka("broker.example:9093", "SSL").model_copy(
                update={
                    "properties": {
                        "security.protocol": "SSL",
                        "ssl.endpoint.identification.algorithm": "none",
                    }
                }
            ),
            "WARNING: SSL: encrypted, but the name in the broker's certificate is not compared",
        ),
    ],
    ids=["loopback", "TLS", "insecure", "without the name"],
)
def test_the_doctor_says_how_it_is(given: KafkaSettings, said: str) -> None:
    """What is meant to be insecure is a warning, not an error."""
    assert _encryption(Settings(kafka=given)).startswith(said)
