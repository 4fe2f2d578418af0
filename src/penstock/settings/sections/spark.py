"""Where Spark runs, and with how much."""

from typing import Literal

from pydantic import field_validator

from penstock.settings.sections.base import Section, option
from penstock.settings.units import ByteSize

MASTERS = ("local[", "sc://", "spark://", "k8s://")


class SparkSettings(Section):
    """Where Spark runs: in the consumer, on a shared Connect server, or on a cluster."""

    master: str = option(
        "local[2]",
        "`local[N]` in the consumer's process, `sc://host:port` for a Connect server, `spark://` "
        "or `k8s://` for a cluster.",
    )
    cores: int = option(
        0, "Tasks a batch is cut into; 0 takes N of `local[N]`, elsewhere 2.", ge=0, le=4096
    )
    driver_memory: ByteSize = option(
        2**30, "The JVM's heap in the consumer (`local[N]` and clusters).", ge=2**28
    )
    server_memory: ByteSize = option(
        2**30, "The heap of the Connect server that `penstock spark start` starts.", ge=2**28
    )
    tables_at_once: int = option(
        4, "How many tables of one batch Spark works on at the same time.", ge=1, le=64
    )
    pass_through: bool = option(
        True,
        "Records that only pass through (no transformation, a lake on a file system) are read and "
        "written by Spark's Python workers; false: by Spark's Kafka connector, as all others are.",
    )
    object_store: Literal["", "s3"] = option(
        "",
        "`s3` gives Spark what it needs to write to `s3a://` (fetched once, 13 MB). Not needed "
        "where Spark has its own, as on most clusters.",
    )
    options: dict[str, str] = option(
        {}, "Further Spark options under their own names, such as `spark.hadoop.fs.s3a.endpoint`."
    )

    @field_validator("master")
    @classmethod
    def _is_master(cls, value: str) -> str:
        if not value.startswith(MASTERS):
            raise ValueError(f"{value!r} is no Spark master; one begins with {', '.join(MASTERS)}")
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
    def tasks(self) -> int:
        """How many tasks a batch is cut into."""
        if self.cores:
            return self.cores
        inside = self.master.removeprefix("local[").removesuffix("]")
        return int(inside) if self.master.startswith("local[") and inside.isdigit() else 2
