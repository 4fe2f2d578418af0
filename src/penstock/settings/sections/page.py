"""The live page and the API behind it: where it listens, and who may ask.

Whether the address is safe is checked by `penstock page` itself, because other processes read the
same settings without the token.
"""

from pydantic import field_validator

from penstock.settings.secret import Secret
from penstock.settings.sections.base import Section, listed_patterns, option
from penstock.settings.sections.kafka import PORT_MAX

DEFAULT_PORT = 8642


class PageSettings(Section):
    """The live page and the API behind it: where it listens, and who may ask."""

    enabled: bool = option(True, "Whether `penstock up` and `penstock demo` start the page too.")
    address: str = option(
        f"127.0.0.1:{DEFAULT_PORT}",
        "Where the page listens, as host:port. An address that other machines reach needs `token`, "
        "and either TLS (`certificate_file` and `key_file`) or `behind_proxy`.",
        json_schema_extra={"pattern": r"^(\[[0-9a-fA-F:]+\]|[^\s:/]+):\d{1,5}$"},
    )
    token: Secret | None = option(
        None, "What everybody must know who asks for figures; at least 16 characters."
    )
    certificate_file: str = option("", "The certificate chain for TLS, as PEM; needs `key_file`.")
    key_file: str = option("", "The private key of the certificate, as PEM.")
    behind_proxy: bool = option(
        False, "Whether a proxy before the page does TLS, so that the page itself need not."
    )
    allowed_hosts: list[str] = option(
        [],
        "Further names under which browsers may ask for the page, without a port; "
        "this machine's own names and the address are always allowed.",
    )

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @field_validator("address")
    @classmethod
    def _is_address(cls, value: str) -> str:
        host, colon, port = value.rpartition(":")
        is_number = port.isascii() and port.isdigit() and int(port) <= PORT_MAX
        is_host = host and not any(one.isspace() or one in "/,@" for one in host)
        is_bare = ":" not in host or (host.startswith("[") and host.endswith("]"))
        if not (colon and is_number and is_host and is_bare):
            raise ValueError(
                f"{value!r} is not an address; write host:port, for instance 127.0.0.1:8642 or "
                "[::1]:8642"
            )
        return value

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _is_list(cls, value: object) -> object:
        return listed_patterns(value)

    @field_validator("allowed_hosts")
    @classmethod
    def _are_names(cls, value: list[str]) -> list[str]:
        for name in value:
            if not name or any(one.isspace() or one in "/*?@," for one in name):
                raise ValueError(f"{name!r} is not the name of a host; write page.example")
        return value
