"""Reads the partitions and offsets of a table's rows, column by column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute
import pyarrow.fs
import pyarrow.parquet

from penstock.errors import PenstockError
from penstock.verification.delta_log import TableState, read_table

Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
NO_OFFSETS: Offsets = np.array([], dtype=np.int64)


class NotVerifiableError(PenstockError):
    """The table lacks the columns that name the source of its rows."""


@dataclass(frozen=True, slots=True)
class Lake:
    """The folder or bucket that holds the tables."""

    file_system: Any
    root: str

    @classmethod
    def at(cls, root: str, options: Mapping[str, str] | None = None) -> "Lake":
        scheme, separator, path = root.partition("://")
        if scheme in {"s3", "s3a"}:
            return cls(_s3(options or {}), path.rstrip("/"))
        if separator:
            file_system, path = pyarrow.fs.FileSystem.from_uri(root)
            return cls(file_system, path.rstrip("/"))
        return cls(pyarrow.fs.LocalFileSystem(), str(Path(root).expanduser().absolute()))

    def table(self, name: str) -> TableState | None:
        return read_table(self.file_system, f"{self.root}/{name}")


def _s3(options: Mapping[str, str]) -> Any:
    """Options under deltalake's names; missing ones come from the environment."""
    given = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
    endpoint = given.get("endpoint_url") or given.get("endpoint")
    scheme, _, address = (endpoint or "https://").partition("://")
    return pyarrow.fs.S3FileSystem(
        access_key=given.get("access_key_id"),
        secret_key=given.get("secret_access_key"),
        session_token=given.get("session_token"),
        region=given.get("region"),
        endpoint_override=address or None,
        scheme=scheme,
    )


def offsets_of_topic(
    lake: Lake, table: str, state: TableState, topic: str, topic_id: str
) -> dict[int, Offsets]:
    """For each partition every offset of this topic in the table, including duplicates."""
    found: dict[int, list[Offsets]] = {}
    for path in sorted(state.files):
        if not _may_hold(path, topic_id):
            continue
        for partitions, offsets in _columns(lake, f"{lake.root}/{table}/{path}", topic, topic_id):
            for number in np.unique(partitions):
                found.setdefault(int(number), []).append(offsets[partitions == number])
    return {number: np.concatenate(some) for number, some in found.items()}


def _may_hold(path: str, topic_id: str) -> bool:
    """Whether the file may hold the topic: its path may name another topic id."""
    parts: Sequence[str] = path.split("/")
    named = next((part[len("topic-") :] for part in parts if part.startswith("topic-")), None)
    return named is None or named == topic_id


def _columns(lake: Lake, path: str, topic: str, topic_id: str) -> Iterator[tuple[Offsets, Offsets]]:
    with lake.file_system.open_input_file(path) as opened:
        parquet = pyarrow.parquet.ParquetFile(opened)
        names = parquet.schema_arrow.names
        if "offset" not in names or "partition" not in names:
            raise NotVerifiableError(
                f"{path} has no columns `partition` and `offset`.",
                remedy="The transformation must keep these columns for `penstock verify`.",
            )
        wanted = [name for name in ("topic", "topic_id", "partition", "offset") if name in names]
        for batch in parquet.iter_batches(columns=wanted, batch_size=1 << 20):
            rows = pyarrow.table(batch)
            for name, text in (("topic", topic), ("topic_id", topic_id)):
                if name in wanted:
                    rows = rows.filter(pyarrow.compute.equal(rows[name], text))
            yield (
                rows["partition"].to_numpy().astype(np.int64),
                rows["offset"].to_numpy().astype(np.int64),
            )
