"""One set of Kafka settings, said in the words of each client library.

librdkafka's names are the ones an operator writes; kafka-python has its own words for the same.
Options are passed explicitly where a library's default may change with a release.
"""

from typing import Any

from penstock.errors import SettingsError
from penstock.settings.sections import KafkaSettings

_FOR_KAFKA_PYTHON = {
    "client.id": "client_id",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "security.protocol": "security_protocol",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
}


def librdkafka_properties(kafka: KafkaSettings) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "client.id": "penstock",
        "socket.connection.setup.timeout.ms": int(min(kafka.answer_timeout, 30) * 1000),
        "log_level": 2,  # librdkafka would write to stderr by itself: what we need is raised
        **kafka.properties,
    }
    if kafka.sasl_password is not None:
        properties["sasl.password"] = kafka.sasl_password.reveal()
    if kafka.ssl_key_password is not None:
        properties["ssl.key.password"] = kafka.ssl_key_password.reveal()
    return properties


def kafka_python_properties(kafka: KafkaSettings) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers.split(","),
        "client_id": "penstock",
        "request_timeout_ms": int(kafka.answer_timeout * 1000),
        "bootstrap_timeout_ms": int(kafka.answer_timeout * 1000),
    }
    for name, value in kafka.properties.items():
        if name in _FOR_KAFKA_PYTHON:
            properties[_FOR_KAFKA_PYTHON[name]] = value
    if kafka.properties.get("ssl.endpoint.identification.algorithm") == "none":
        properties["ssl_check_hostname"] = False
    if kafka.sasl_password is not None:
        properties["sasl_plain_password"] = kafka.sasl_password.reveal()
    if kafka.ssl_key_password is not None:
        properties["ssl_password"] = kafka.ssl_key_password.reveal()
    if "sasl_plain_username" in properties and "sasl_plain_password" not in properties:
        raise SettingsError(
            "kafka.properties names sasl.username but there is no password.",
            remedy="Set kafka.sasl_password_file or PENSTOCK_KAFKA__SASL_PASSWORD.",
        )
    return properties
