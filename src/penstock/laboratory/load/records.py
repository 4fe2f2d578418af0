"""Makes the records: JSON with a unique id, a timestamp, and padding to the requested size.

    {"id":"k3f9a2-orders-0-17","at_ms":1794778569729,"pad":"..."}

The padding is base64 text, which compresses badly, or one repeated letter with `compressible`.
"""

import base64
import random
from dataclasses import dataclass
from typing import Literal

from penstock.model import TopicPartition

RECORD_BYTES_MIN = 128
_PAD_BYTES = 1 << 20
_CLOSING = b'"}'


@dataclass(frozen=True, slots=True)
class RecordForm:
    """`keys` is `none`, `id` (a key for every record) or a number of keys used in rotation."""

    record_bytes: int = 1000
    keys: Literal["none", "id"] | int = "none"
    compressible: bool = False

    def __post_init__(self) -> None:
        if self.record_bytes < RECORD_BYTES_MIN:
            raise ValueError(f"a record needs at least {RECORD_BYTES_MIN} bytes for its id")
        if isinstance(self.keys, int) and self.keys < 1:
            raise ValueError("a number of keys is at least 1")


def lane_of(run_id: str, partition: TopicPartition) -> str:
    """The begin of the ids of one run's records for one partition; the number follows."""
    return f"{run_id}-{partition.topic}-{partition.partition}"


class RecordMaker:
    """Makes the records of one run. `run_id` keeps the ids of different runs apart."""

    def __init__(self, form: RecordForm, run_id: str, *, seed: int) -> None:
        self._form = form
        self._run_id = run_id
        chance = random.Random(seed)
        self._pad = (
            b"x" * _PAD_BYTES
            if form.compressible
            else base64.b64encode(chance.randbytes(_PAD_BYTES))[:_PAD_BYTES]
        )

    def record(
        self, partition: TopicPartition, number: int, at_ms: int
    ) -> tuple[bytes | None, bytes]:
        """Key and value of the `number`-th record of a partition, of the form's size."""
        record_id = f"{lane_of(self._run_id, partition)}-{number}"
        head = f'{{"id":"{record_id}","at_ms":{at_ms},"pad":"'.encode()
        key = self._key(record_id, number)
        length = self._form.record_bytes - len(head) - len(_CLOSING) - len(key or b"")
        if length < 0:
            return key, head + _CLOSING
        start = (number * 7919) % (_PAD_BYTES - min(length, _PAD_BYTES - 1))
        pad = self._pad[start : start + length]
        if len(pad) < length:  # records larger than the padding we keep
            pad = (pad * (length // len(pad) + 1))[:length]
        return key, head + pad + _CLOSING

    def _key(self, record_id: str, number: int) -> bytes | None:
        if self._form.keys == "none":
            return None
        if self._form.keys == "id":
            return record_id.encode()
        return f"key-{number % self._form.keys}".encode()
