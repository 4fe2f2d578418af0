"""Translates one set of Kafka settings for each client library.

Operators write librdkafka's property names; kafka-python and the Java client have other names for
some of them. Options are set here where a library's default may change with a release.
"""

from typing import Any

from penstock.errors import SettingsError
from penstock.kafka_io.certificate_files import require_certificates
from penstock.settings.sections import KafkaSettings

# The libraries' own 10 s and 30 s would let a healthy consumer do nothing after the broker is back.
_RECONNECT_WAIT_MS_MAX = 1_000

_FOR_KAFKA_PYTHON = {
    "client.id": "client_id",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "security.protocol": "security_protocol",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
}

_SAME_IN_JAVA = frozenset(
    {
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "fetch.max.bytes",
        "max.partition.fetch.bytes",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "sasl.mechanism",
        "security.protocol",
        "ssl.endpoint.identification.algorithm",
    }
)

_OTHERWISE_IN_JAVA = {"fetch.wait.max.ms": "fetch.max.wait.ms"}


def require_encryption(kafka: KafkaSettings) -> None:
    """SettingsError where the connection would leave the machine without TLS, and unasked."""
    if kafka.unencrypted_servers and not kafka.insecure:
        raise SettingsError(
            f"The connection to {', '.join(kafka.unencrypted_servers)} would not be encrypted "
            f"(security.protocol {kafka.security_protocol}).",
            remedy="Use TLS: kafka.properties with security.protocol SSL or SASL_SSL. If a "
            "connection without it is meant, say so: kafka.insecure: true in the settings file, "
            "or --set kafka.insecure=true.",
        )


def require_usable(kafka: KafkaSettings) -> None:
    """SettingsError for what no client could connect with, or should not."""
    require_encryption(kafka)
    require_certificates(kafka)
    if "sasl.username" in kafka.properties and kafka.sasl_password is None:
        raise SettingsError(
            "kafka.properties names sasl.username but there is no password.",
            remedy="Set kafka.sasl_password_file or PENSTOCK_KAFKA__SASL_PASSWORD.",
        )


def librdkafka_properties(kafka: KafkaSettings) -> dict[str, Any]:
    require_usable(kafka)
    properties: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "client.id": "penstock",
        "reconnect.backoff.max.ms": _RECONNECT_WAIT_MS_MAX,
        "socket.connection.setup.timeout.ms": int(min(kafka.answer_timeout, 30) * 1000),
        "log_level": 2,  # librdkafka writes to stderr; what matters is raised
        **kafka.properties,
    }
    if kafka.sasl_password is not None:
        properties["sasl.password"] = kafka.sasl_password.reveal()
    if kafka.ssl_key_password is not None:
        properties["ssl.key.password"] = kafka.ssl_key_password.reveal()
    return properties


def java_properties(kafka: KafkaSettings) -> dict[str, str]:
    """For Spark's connector. The Java client reads certificates as PEM files too.

    It wants a client's key and certificate in one file: `ssl.key.location` must hold both when
    `ssl.certificate.location` is set.
    """
    require_usable(kafka)
    same = {name: value for name, value in kafka.properties.items() if name in _SAME_IN_JAVA}
    renamed = {
        java: kafka.properties[name]
        for name, java in _OTHERWISE_IN_JAVA.items()
        if name in kafka.properties
    }
    properties = {"bootstrap.servers": kafka.bootstrap_servers, **same, **renamed}
    if "ssl.ca.location" in kafka.properties:
        properties["ssl.truststore.type"] = "PEM"
        properties["ssl.truststore.location"] = kafka.properties["ssl.ca.location"]
    if "ssl.key.location" in kafka.properties:
        properties["ssl.keystore.type"] = "PEM"
        properties["ssl.keystore.location"] = kafka.properties["ssl.key.location"]
        if kafka.ssl_key_password is not None:
            properties["ssl.key.password"] = kafka.ssl_key_password.reveal()
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        properties["ssl.endpoint.identification.algorithm"] = ""
    if "sasl.username" in kafka.properties and kafka.sasl_password is not None:
        properties["sasl.jaas.config"] = _jaas(kafka, kafka.sasl_password.reveal())
    return properties


def _jaas(kafka: KafkaSettings, password: str) -> str:
    mechanism = kafka.properties.get("sasl.mechanism", "PLAIN")
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    user, word = (
        text.replace("\\", "\\\\").replace('"', '\\"')
        for text in (kafka.properties["sasl.username"], password)
    )
    module = f"org.apache.kafka.common.security.{kind}LoginModule"
    return f'{module} required username="{user}" password="{word}";'


def kafka_python_properties(kafka: KafkaSettings) -> dict[str, Any]:
    require_usable(kafka)
    properties: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers.split(","),
        "client_id": "penstock",
        "request_timeout_ms": int(kafka.answer_timeout * 1000),
        "bootstrap_timeout_ms": int(kafka.answer_timeout * 1000),
        "reconnect_backoff_max_ms": _RECONNECT_WAIT_MS_MAX,
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
    return properties
