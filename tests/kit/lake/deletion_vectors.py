"""Deletes rows of a Delta table as Spark does it with deletion vectors, by an entry of the log."""

import json
from pathlib import Path

from deltalake import DeltaTable


def delete_first_two_rows_by_vector(table: Path) -> None:
    """Write the log entry that Spark writes for `DELETE ... WHERE offset < 2` with such vectors."""
    version = DeltaTable(table).version()
    for number in range(version + 1):
        for line in (table / f"_delta_log/{number:020d}.json").read_text().splitlines():
            add = json.loads(line).get("add")
            if add and json.loads(add["stats"])["minValues"]["offset"] == 0:
                first = add
    vector = {
        "storageType": "i",
        "pathOrInlineDv": _inline_vector(),
        "sizeInBytes": 36,
        "cardinality": 2,
    }
    stats = {**json.loads(first["stats"]), "tightBounds": False}
    features = ["deletionVectors"]
    entry = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE", "operationParameters": {}}},
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {"remove": {"path": first["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": {**first, "deletionVector": vector, "stats": json.dumps(stats)}},
    ]
    text = "".join(f"{json.dumps(action)}\n" for action in entry)
    (table / f"_delta_log/{version + 1:020d}.json").write_text(text)


def _inline_vector() -> str:
    """Rows 0 and 1 as Delta's inline deletion vector: a roaring bitmap in Z85."""
    bitmap = b"".join(
        number.to_bytes(size, "little")
        for number, size in (
            (1_681_511_377, 4),  # the format's magic number
            (1, 8),  # one bitmap of 32-bit positions
            (0, 4),  # for positions whose upper half is 0
            (12_346, 4),  # a bitmap without runs
            (1, 4),  # one container
            (0, 2),  # its key
            (1, 2),  # its size less one
            (16, 4),  # where it begins
            (0, 2),
            (1, 2),
        )
    )
    alphabet = (
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    text = ""
    for start in range(0, len(bitmap), 4):
        number = int.from_bytes(bitmap[start : start + 4], "big")
        text += "".join(alphabet[number // 85**place % 85] for place in (4, 3, 2, 1, 0))
    return text
