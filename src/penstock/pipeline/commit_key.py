"""A secret beside each table, by which a batch that comes by message shows where it is from.

Who can offer a batch can move the ledger. So a batch is signed with a key that only those know who
can read the table's folder, and the right to write to a Kafka topic is not the right to write to
the lake. The first consumer that needs the key makes it. Readers of a table pass over its folder,
as over every name that begins with an underscore.
"""

import os
import secrets
import uuid

from penstock.pipeline.storage import TableStorage

KEY_PATH = "_penstock/commit-key"
_KEY_BYTES = 32


def commit_key(storage: TableStorage) -> bytes:
    """The key of this table. Raises OSError if it can be neither read nor made."""
    found = storage.read_marked(KEY_PATH)
    if found is None:
        _make(storage, secrets.token_hex(_KEY_BYTES).encode())
        found = storage.read_marked(KEY_PATH)
    if found is None or len(found[0]) != 2 * _KEY_BYTES:
        raise OSError(f"{storage.uri}/{KEY_PATH} is no key: remove it")
    return found[0]


def _make(storage: TableStorage, key: bytes) -> None:
    """Whole or not at all; of several that make it one is first."""
    if not storage.is_local:
        storage.put_new(KEY_PATH, key)
        return
    place = storage.local_path(KEY_PATH)
    place.parent.mkdir(exist_ok=True)
    written = place.with_name(f"{uuid.uuid4()}.tmp")
    try:
        with written.open("xb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        os.link(written, place)
    except FileExistsError:
        pass  # another one was quicker
    finally:
        written.unlink(missing_ok=True)
