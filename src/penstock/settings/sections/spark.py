"""Settings of Spark: where it runs, its memory and its cores."""

from typing import Literal

from pydantic import field_validator

from penstock.settings.sections.base import Section, option
from penstock.settings.units import ByteSize, Duration

MASTERS = ("local[", "sc://", "spark://", "k8s://")


class SparkSettings(Section):
    """Spark: in the consumer, on a shared Connect server, or on a cluster."""

    master: str = option(
        "local[2]",
        "`local[N]` in the consumer's process, `sc://host:port` for a Connect server, `spark://` "
        "or `k8s://` for a cluster.",
    )
    cores: int = option(
        0, "The tasks of a batch. 0: N of `local[N]`, and 2 elsewhere.", ge=0, le=4096
    )
    driver_memory: ByteSize = option(
        2**30, "The JVM heap in the consumer (for `local[N]` and clusters).", ge=2**28
    )
    server_memory: ByteSize = option(
        2**30, "The heap of the Connect server of `penstock spark start`.", ge=2**28
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
        return value

    @field_validator("options", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if isinstance(value, dict):
            return {
                str(name): str(one).lower() if isinstance(one, bool) else str(one)
                for name, one in value.items()
            }
        return value

    @property
    def uses_connect_server(self) -> bool:
        """Whether Spark runs in a Connect server, and not in the consumer or on a cluster."""
        return self.master.startswith("sc://")

    @property
    def tasks(self) -> int:
        """The number of tasks of a batch."""
        if self.cores:
            return self.cores
        inside = self.master.removeprefix("local[").removesuffix("]")
        return int(inside) if self.master.startswith("local[") and inside.isdigit() else 2
