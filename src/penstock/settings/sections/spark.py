"""Settings of Spark: where it runs, its memory and its cores."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import field_validator, model_validator

from penstock.settings.secret import Secret
from penstock.settings.sections.addresses import is_loopback
from penstock.settings.sections.base import (
    Section,
    has_password,
    is_secret_name,
    option,
    without_secrets,
)
from penstock.settings.units import ByteSize, Duration

MASTERS = ("local[", "sc://", "spark://", "k8s://")
_MASKS = "it masks passwords where Spark prints plans and options"
# Options with which Spark would show secrets, or be reached without a token or TLS.
GUARDS = {
    "spark.redaction.regex": _MASKS,
    "spark.redaction.string.regex": _MASKS,
    "spark.sql.redaction.options.regex": _MASKS,
    "spark.sql.redaction.string.regex": _MASKS,
    "spark.connect.grpc.binding.address": "the option --listen-on of `penstock spark start` has it",
}
SERVER_TOKEN_OPTION = "spark.connect.authenticate.token"  # noqa: S105 -- a name


class SparkSettings(Section):
    """Spark: in the consumer, on a shared Connect server, or on a cluster."""

    master: str = option(
        "local[2]",
        "`local[N]` in the consumer's process, `sc://host:port` for a Connect server, `spark://` "
        "or `k8s://` for a cluster.",
    )
    token: Secret | None = option(
        None,
        "The token of the Connect server, without which it opens no session. Not needed for a "
        "server that the same user started on this machine: clients find the file with its token.",
    )
    insecure: bool = option(
        False,
        "Whether a Connect server of another machine without TLS or without a token is meant: "
        "who is on the way, or reaches it, can then run code in it.",
    )
    certificate_authority_file: str = option(
        "",
        "The certificate authority of a Connect server with TLS (`;use_ssl=true` in `master`). "
        "Empty: those that gRPC knows.",
    )
    certificate_file: str = option(
        "",
        "The certificate with which `penstock spark start` serves TLS; needs "
        "`certificate_key_file`.",
    )
    certificate_key_file: str = option("", "The file with the private key of `certificate_file`.")
    cores: int = option(
        0, "The tasks of a batch. 0: N of `local[N]`, and 2 elsewhere.", ge=0, le=4096
    )
    driver_memory: ByteSize = option(
        2**30, "The JVM heap in the consumer (for `local[N]` and clusters).", ge=2**28
    )
    server_memory: ByteSize = option(
        2**30, "The heap of the Connect server of `penstock spark start`.", ge=2**28
    )
    start_timeout: Duration = option(
        300.0,
        "How long a Connect server that Penstock starts may take until it answers. On a slow or "
        "busy machine that is more than a minute.",
        gt=0,
        le=3600,
    )
    tables_at_once: int = option(
        4, "The number of tables of one batch that Spark writes at the same time.", ge=1, le=64
    )
    pass_through: bool = option(
        True,
        "Read and write records without a transformation in Spark's Python workers, if the lake is "
        "on a file system; false uses Spark's Kafka connector for all records.",
    )
    workers_retry: Duration = option(
        300.0,
        "How long records go through Spark's Kafka connector after a Python worker lacked our "
        "code; then the workers are tried again.",
        gt=0,
        le=86400,
    )
    local_failures_max: int = option(
        3,
        "The batches in a row that may lose a Spark of the consumer's own; then the consumer ends "
        "and is restarted with a new one.",
        ge=1,
        le=1000,
    )
    object_store: Literal["", "s3"] = option(
        "",
        "`s3` adds the jars for `s3a://` to Spark (fetched once, 13 MB). Not needed if Spark has "
        "its own, as on most clusters.",
    )
    options: dict[str, str] = option(
        {}, "Further Spark options under their own names, such as `spark.hadoop.fs.s3a.endpoint`."
    )

    @field_validator("master")
    @classmethod
    def _is_master(cls, value: str) -> str:
        if not value.startswith(MASTERS):
            raise ValueError(
                f"{value!r} is not a Spark master; it begins with {', '.join(MASTERS)}"
            )
        # Parameters that Spark does not know travel to the server as headers.
        headers = _parameters(value)
        if has_password(value) or any(_is_secret_header(name) for name in headers):
            raise ValueError(
                "it has a secret, such as the server's token: take it out, and set "
                "spark.token_file, or PENSTOCK_SPARK__TOKEN in the environment"
            )
        return value

    @field_validator("options")
    @classmethod
    def _leaves_guards(cls, value: dict[str, str]) -> dict[str, str]:
        """Options of a server are on its command line, which everybody can read."""
        if SERVER_TOKEN_OPTION in value:
            raise ValueError(
                f"{SERVER_TOKEN_OPTION} is a secret: set spark.token_file, or "
                "PENSTOCK_SPARK__TOKEN in the environment"
            )
        for name in sorted(GUARDS & value.keys()):
            raise ValueError(f"{name} is set by Penstock: {GUARDS[name]}; take it out")
        return value

    @model_validator(mode="after")
    def _certificate_is_whole(self) -> Self:
        if bool(self.certificate_file) != bool(self.certificate_key_file):
            raise ValueError("set certificate_file and certificate_key_file together")
        return self

    @field_validator("options", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if isinstance(value, dict):
            return {
                str(name): str(one).lower() if isinstance(one, bool) else str(one)
                for name, one in value.items()
            }
        return value

    @field_validator("options")
    @classmethod
    def _has_no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        return without_secrets(value)

    @property
    def uses_connect_server(self) -> bool:
        """Whether Spark runs in a Connect server, and not in the consumer or on a cluster."""
        return self.master.startswith("sc://")

    @property
    def server_port(self) -> int | None:
        """The port of a Connect server on this machine; None for any other master."""
        address = urlsplit(self.master)
        is_here = self.uses_connect_server and is_loopback(address.hostname or "")
        return (address.port or 15002) if is_here else None

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is used to the Connect server."""
        return _parameters(self.master).get("use_ssl", "").lower() == "true"

    @property
    def is_exposed(self) -> bool:
        """Whether what goes to the Connect server leaves the machine without TLS."""
        return self.uses_connect_server and self.server_port is None and not self.is_encrypted

    @property
    def tasks(self) -> int:
        """The number of tasks of a batch."""
        if self.cores:
            return self.cores
        inside = self.master.removeprefix("local[").removesuffix("]")
        return int(inside) if self.master.startswith("local[") and inside.isdigit() else 2


def _is_secret_header(name: str) -> bool:
    return is_secret_name(name) or name.lower() in ("authorization", "cookie")


def _parameters(master: str) -> dict[str, str]:
    """What follows the address of a Connect server: `/;use_ssl=true;user_id=me`."""
    parts = master.partition("/;")[2].split(";")
    return dict(part.partition("=")[::2] for part in parts if part)
