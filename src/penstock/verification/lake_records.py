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


class RowsAmbiguousError(NotVerifiableError):
    """Rows of several topics lie in one file, and nothing says which row is of which."""


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
    lake: Lake,
    table: str,
    state: TableState,
    topic: str,
    topic_id: str,
    *,
    with_content: bool,
    group: str | None = None,
    is_alone: bool = True,
) -> dict[int, Records]:
    """Per partition, every record of this topic in the table, repeats included.

    With `group`, files that another group wrote are left out. `is_alone` says that the ledger of
    the table names no other topic, so that a file need not say of which topic its rows are.
    """
    if state.has_deletion_vectors:
        raise NotVerifiableError(
            f"The table {table} has deletion vectors: rows were deleted without rewriting files.",
            remedy="Purge them first (in Spark: REORG TABLE ... APPLY (PURGE)), then verify again.",
        )
    found: dict[int, list[Records]] = {}
    for path, values in sorted(state.files.items()):
        if not _may_hold(path, topic_id) or values.get("topic", topic) != topic:
            continue
        if group is not None and not _may_be_of(path, group):
            continue
        file = f"{lake.root}/{table}/{path}"
        has_topic = is_alone or _topic_id_of(path) is not None or "topic" in values
        for partitions, records in _columns(
            lake, file, topic, topic_id, with_content=with_content, has_topic=has_topic
        ):
            for number in np.unique(partitions):
                found.setdefault(int(number), []).append(records.where(partitions == number))
    return {number: Records.joined(some) for number, some in found.items()}


def _may_hold(path: str, topic_id: str) -> bool:
    """A file of one topic has the topic's id in its path; a re-created topic has another id."""
    named = _topic_id_of(path)
    return named is None or named == topic_id


def _topic_id_of(path: str) -> str | None:
    parts: Sequence[str] = path.split("/")
    return next((part[len("topic-") :] for part in parts if part.startswith("topic-")), None)


def _may_be_of(path: str, group: str) -> bool:
    """Each group writes below `data/<group>`; what lies elsewhere was rewritten by another tool."""
    parts = path.split("/")
    return parts[0] != "data" or parts[1] == group


def _columns(
    lake: Lake, path: str, topic: str, topic_id: str, *, with_content: bool, has_topic: bool
) -> Iterator[tuple[Offsets, Records]]:
    with lake.file_system.open_input_file(path) as opened:
        parquet = pyarrow.parquet.ParquetFile(opened)
        schema = parquet.schema_arrow
        if "offset" not in schema.names or "partition" not in schema.names:
            raise NotVerifiableError(
                f"{path} has no columns `partition` and `offset`.",
                remedy="The transformation must keep these columns for `penstock verify`.",
            )
        if not has_topic and "topic" not in schema.names:
            raise RowsAmbiguousError(
                f"{path} has rows of several topics, and no column `topic` that tells them apart.",
                remedy="Keep the column `topic` in tables that several topics share.",
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
            if rows["partition"].null_count or rows["offset"].null_count:
                raise NotVerifiableError(
                    f"{path} has rows without a partition or an offset: "
                    "their partition is unknown.",
                    remedy="The transformation must keep both columns as they are.",
                )
            offsets = rows["offset"].to_numpy().astype(np.int64)
            checksums = None
            if has_content:
                pairs = zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)
                checksums = checksums_of(pairs, len(rows))
            yield rows["partition"].to_numpy().astype(np.int64), Records(offsets, checksums)


def _without_views(rows: Any) -> Any:
    """Plain texts and bytes; pyarrow can neither compare nor filter the views of other writers."""
    plain = {pyarrow.string_view(): pyarrow.string(), pyarrow.binary_view(): pyarrow.binary()}
    fields = [field.with_type(plain.get(field.type, field.type)) for field in rows.schema]
    return rows.cast(pyarrow.schema(fields))


def _is_bytes(kind: Any) -> bool:
    return bool(
        pyarrow.types.is_binary(kind)
        or pyarrow.types.is_large_binary(kind)
        or pyarrow.types.is_binary_view(kind)
    )
