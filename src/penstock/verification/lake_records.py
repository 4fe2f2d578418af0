"""Reads which records of which partitions a table's files hold, column by column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute
import pyarrow.fs
import pyarrow.parquet

from penstock.errors import PenstockError
from penstock.verification.delta_log import TableState, read_table
from penstock.verification.records import Offsets, Records, checksums_of


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


def records_of_topic(
    lake: Lake, table: str, state: TableState, topic: str, topic_id: str, *, with_content: bool
) -> dict[int, Records]:
    """Per partition, every record of this topic in the table, repeats included."""
    if state.has_deletion_vectors:
        raise NotVerifiableError(
            f"The table {table} has deletion vectors: rows were deleted without rewriting files.",
            remedy="Purge them first (in Spark: REORG TABLE ... APPLY (PURGE)), then verify again.",
        )
    found: dict[int, list[Records]] = {}
    for path in sorted(state.files):
        if not _may_hold(path, topic_id):
            continue
        file = f"{lake.root}/{table}/{path}"
        for partitions, records in _columns(lake, file, topic, topic_id, with_content=with_content):
            for number in np.unique(partitions):
                found.setdefault(int(number), []).append(records.where(partitions == number))
    return {number: Records.joined(some) for number, some in found.items()}


def _may_hold(path: str, topic_id: str) -> bool:
    """A file of one topic has the topic's id in its path; a re-created topic has another id."""
    parts: Sequence[str] = path.split("/")
    named = next((part[len("topic-") :] for part in parts if part.startswith("topic-")), None)
    return named is None or named == topic_id


def _columns(
    lake: Lake, path: str, topic: str, topic_id: str, *, with_content: bool
) -> Iterator[tuple[Offsets, Records]]:
    with lake.file_system.open_input_file(path) as opened:
        parquet = pyarrow.parquet.ParquetFile(opened)
        schema = parquet.schema_arrow
        if "offset" not in schema.names or "partition" not in schema.names:
            raise NotVerifiableError(
                f"{path} has no columns `partition` and `offset`.",
                remedy="The transformation must keep these columns for `penstock verify`.",
            )
        has_content = with_content and all(
            name in schema.names and _is_bytes(schema.field(name).type) for name in ("key", "value")
        )
        wanted = [
            name for name in ("topic", "topic_id", "partition", "offset") if name in schema.names
        ]
        columns = [*wanted, "key", "value"] if has_content else wanted
        for batch in parquet.iter_batches(columns=columns, batch_size=1 << 16):
            rows = _without_views(pyarrow.table(batch))
            for name, text in (("topic", topic), ("topic_id", topic_id)):
                if name in wanted:
                    rows = rows.filter(pyarrow.compute.equal(rows[name], text))
            offsets = rows["offset"].to_numpy().astype(np.int64)
            checksums = None
            if has_content:
                pairs = zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)
                checksums = checksums_of(pairs, len(rows))
            yield rows["partition"].to_numpy().astype(np.int64), Records(offsets, checksums)


def _without_views(rows: Any) -> Any:
    """Other writers store texts and bytes as views, which Arrow can neither compare nor filter."""
    plain = {pyarrow.string_view(): pyarrow.string(), pyarrow.binary_view(): pyarrow.binary()}
    types = [plain.get(field.type, field.type) for field in rows.schema]
    columns = zip(rows.column_names, types, strict=True)
    return rows.cast(pyarrow.schema(list(columns)))


def _is_bytes(kind: Any) -> bool:
    return bool(
        pyarrow.types.is_binary(kind)
        or pyarrow.types.is_large_binary(kind)
        or pyarrow.types.is_binary_view(kind)
    )
