"""Settings of the connection to Kafka.

Client properties have librdkafka's names. Only the listed ones are allowed, because some others can
load code or read files. Secrets are separate options, because they may come only from a file or the
environment.
"""

from difflib import get_close_matches

from pydantic import field_validator

from penstock.settings.secret import Secret
from penstock.settings.sections.addresses import is_loopback
from penstock.settings.sections.base import Section, option
from penstock.settings.units import Duration

CLIENT_PROPERTIES_ALLOWED = frozenset(
    {
        "client.id",
        "client.rack",
        "compression.type",
        "connections.max.idle.ms",
        "fetch.max.bytes",
        "fetch.wait.max.ms",
        "linger.ms",
        "max.partition.fetch.bytes",
        "message.max.bytes",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "sasl.mechanism",
        "sasl.username",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.timeout.ms",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
    }
)
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
# Those that all three client libraries know, with a user and a password.
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SECRET_PROPERTIES = {"sasl.password": "sasl_password", "ssl.key.password": "ssl_key_password"}


PORT_MAX = 65_535
_WRITE_ADDRESSES = "write host:port, several with commas: broker-1:9092,broker-2:9092"


class KafkaSettings(Section):
    """The connection to Kafka: addresses, security and client properties."""

    bootstrap_servers: str = option(
        "127.0.0.1:9092",
        "The brokers' addresses, as host:port; several with commas.",
        json_schema_extra={"pattern": r"^[^\s,/]+:\d{1,5}(,[^\s,/]+:\d{1,5})*$"},
    )
    properties: dict[str, str] = option(
        {}, "Kafka client properties under their librdkafka names; only safe ones are allowed."
    )
    insecure: bool = option(
        False,
        "Whether a connection without TLS to a broker of another machine is meant: everybody on "
        "the way can then read and change what it carries.",
    )
    sasl_password: Secret | None = option(None, "The password for `sasl.username`.")
    ssl_key_password: Secret | None = option(None, "The password of the client's private key.")
    answer_timeout: Duration = option(
        10.0, "How long to wait for a broker's answer before it counts as unreachable.", gt=0
    )

    @property
    def security_protocol(self) -> str:
        return self.properties.get("security.protocol", "PLAINTEXT")

    @property
    def unencrypted_servers(self) -> list[str]:
        """The addresses of other machines to which the connection is not encrypted."""
        if not self.security_protocol.endswith("PLAINTEXT"):
            return []
        return [
            one
            for one in self.bootstrap_servers.split(",")
            if not is_loopback(one.rpartition(":")[0])
        ]

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _is_one_text(cls, value: object) -> object:
        if isinstance(value, list):
            right = ",".join(str(one) for one in value)
            raise ValueError(f"it is a list; write one text with commas: {right}")  # noqa: TRY004 -- pydantic catches only this
        return value

    @field_validator("bootstrap_servers")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        """Each mistake with what to write instead: clients only say that no broker answers."""
        if not value.strip():
            raise ValueError(f"it is empty; {_WRITE_ADDRESSES}")
        if "@" in value:  # not quoted: what is before it may be a password
            raise ValueError(
                f"it has a user before the host; {_WRITE_ADDRESSES}. The user is sasl.username in "
                "kafka.properties, the password kafka.sasl_password_file"
            )
        without = ",".join(one for one in "".join(value.split()).split(",") if one)
        if "".join(value.split()) != value:
            raise ValueError(f"{value!r} has a blank; write {without}")
        if without != value:
            raise ValueError(f"{value!r} has an empty entry; write {without or 'host:port'}")
        for address in value.split(","):
            _require_address(address)
        return value

    @field_validator("properties", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if isinstance(value, dict):
            return {str(name): _text(entry) for name, entry in value.items()}
        return value

    @field_validator("properties")
    @classmethod
    def _only_known(cls, value: dict[str, str]) -> dict[str, str]:
        for name in sorted(value):
            if name in SECRET_PROPERTIES:
                option_name = SECRET_PROPERTIES[name]
                raise ValueError(
                    f"{name} is a secret: set kafka.{option_name}_file, or "
                    f"PENSTOCK_KAFKA__{option_name.upper()} in the environment"
                )
            if name not in CLIENT_PROPERTIES_ALLOWED:
                near = get_close_matches(name, sorted(CLIENT_PROPERTIES_ALLOWED), n=1)
                meant = f", did you mean {near[0]}?" if near else "."
                raise ValueError(
                    f"the client property {name!r} is not allowed{meant} Allowed are "
                    f"{', '.join(sorted(CLIENT_PROPERTIES_ALLOWED))}"
                )
        return value

    @field_validator("properties")
    @classmethod
    def _can_log_in(cls, value: dict[str, str]) -> dict[str, str]:
        """What no broker would let in is refused here, and not as `no broker answers` later."""
        protocol = value.get("security.protocol", "PLAINTEXT")
        mechanism = value.get("sasl.mechanism")
        if protocol not in SECURITY_PROTOCOLS:
            raise ValueError(
                f"security.protocol {protocol!r} is unknown; use one of "
                f"{', '.join(SECURITY_PROTOCOLS)}"
            )
        if mechanism is not None and mechanism not in SASL_MECHANISMS:
            raise ValueError(
                f"sasl.mechanism {mechanism!r} cannot be used; Penstock logs in with one of "
                f"{', '.join(SASL_MECHANISMS)}. For others ask for a SCRAM user, or use client "
                "certificates (security.protocol SSL)"
            )
        if protocol.startswith("SASL_"):
            for name in ("sasl.mechanism", "sasl.username"):
                if name not in value:
                    raise ValueError(f"security.protocol {protocol} needs {name}")
        elif mechanism is not None or "sasl.username" in value:
            raise ValueError(
                f"sasl.mechanism and sasl.username have no effect with security.protocol "
                f"{protocol}; use SASL_SSL (or SASL_PLAINTEXT without TLS)"
            )
        given = sorted(name for name in value if name.startswith("ssl."))
        if given and not protocol.endswith("SSL"):
            raise ValueError(
                f"{given[0]} has no effect with security.protocol {protocol}; use SSL, or SASL_SSL"
            )
        if ("ssl.key.location" in value) != ("ssl.certificate.location" in value):
            raise ValueError(
                "a client certificate needs both ssl.certificate.location and ssl.key.location"
            )
        return value


def _require_address(address: str) -> None:
    scheme, separator, rest = address.rpartition("://")
    if separator:
        raise ValueError(
            f"{address!r} begins with {scheme}://; write {rest.partition('/')[0]} alone. Whether "
            "it is encrypted is said by security.protocol in kafka.properties"
        )
    bare, slash, _ = address.partition("/")
    if slash:
        raise ValueError(f"{address!r} has a path; write {bare} alone")
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        raise ValueError(
            f"{address!r} has no port; write {address}:9092, or the port at which it listens"
        )
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= PORT_MAX):
        raise ValueError(
            f"{address!r} ends with {port!r}, which is no port; write a number from 1 to "
            f"{PORT_MAX}, such as {host or 'host'}:9092"
        )
    if not host:
        raise ValueError(f"{address!r} has no host; write host:{port}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
