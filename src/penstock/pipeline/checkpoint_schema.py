"""The columns of a checkpoint of version 1, as every Delta reader knows them.

One column a kind of action, one row an action. Statistics are kept as JSON only, and what belongs
to features that `log_replay` does not read (deletion vectors, row ids) is not here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.pipeline.log_entries import LogNotUnderstoodError

# What is raised where a log has a value of another type than its field.
DAMAGE = (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
_TEXTS = pa.map_(pa.string(), pa.string())
_FILE = [("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64())]

ADD = pa.struct(
    [
        *_FILE,
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _TEXTS),
    ]
)
REMOVE = pa.struct(
    [
        *_FILE,
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("createdTime", pa.int64()),
        ("configuration", _TEXTS),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
TRANSACTION = pa.struct(
    [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
)
CHECKPOINT = pa.schema(
    [
        ("txn", TRANSACTION),
        ("add", ADD),
        ("remove", REMOVE),
        ("metaData", METADATA),
        ("protocol", PROTOCOL),
    ]
)


def array_of(actions: Iterable[Any], kind: Any) -> Any:
    """Actions of entries as a checkpoint has them. Raises LogNotUnderstoodError."""
    try:
        return pa.array([stored(action, kind) for action in actions], kind)
    except DAMAGE as error:
        raise LogNotUnderstoodError(f"an action is damaged: {error}") from error


def stored(value: Any, kind: Any) -> Any:
    """A value of an entry's JSON as Arrow takes it: a map as pairs, and only known fields."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items() if isinstance(value, Mapping) else value)
    if pa.types.is_struct(kind):
        return {one.name: stored(value.get(one.name), one.type) for one in kind}
    return value
