"""Reads what a campaign needs from the lake: the ids of all records, and the times of the commits.

Like `penstock verify` it shares no code with the pipeline that wrote them.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.laboratory.campaign.deliveries import Numbers
from penstock.verification.delta_log import read_table
from penstock.verification.lake_records import Lake

_ID = r'^\{"id":"(?P<lane>[^"]+)-(?P<number>[0-9]+)"'
# Not the epochs that are kept beside the offsets, nor the notes of a compaction.
_LEDGER_ENTRY = re.compile(r"[^/]+/(?!compaction/)(?P<topic_id>[^/]+)/(?P<number>[0-9]+)")
NO_ID = "without an id"


@dataclass(frozen=True, slots=True)
class CommitTime:
    """When a partition's offset in the ledger went on."""

    at_ms: int
    topic_id: str
    partition: str
    offset: int


def ids_in_lake(root: str, tables: Iterable[str]) -> dict[str, Numbers]:
    """By lane, the numbers of all records, repeats included."""
    lake = Lake.at(root)
    found: dict[str, list[Numbers]] = {}
    for table in tables:
        state = read_table(lake.file_system, f"{lake.root}/{table}")
        for path in () if state is None else sorted(state.files):
            with lake.file_system.open_input_file(f"{lake.root}/{table}/{path}") as opened:
                values = pq.read_table(opened, columns=["value"])["value"]
            for lane, numbers in _ids(values).items():
                found.setdefault(lane, []).append(numbers)
    return {lane: np.concatenate(parts) for lane, parts in found.items()}


def _ids(values: pa.ChunkedArray) -> dict[str, Numbers]:
    rows = pc.extract_regex(pc.cast(values, pa.string()), pattern=_ID)
    lanes = pc.fill_null(pc.struct_field(rows, "lane"), NO_ID)
    numbers = pc.fill_null(pc.struct_field(rows, "number"), "0").cast(pa.int64()).to_numpy()
    encoded = pa.chunked_array(lanes).combine_chunks().dictionary_encode()
    indices = encoded.indices.to_numpy()
    return {
        name: numbers[indices == index] for index, name in enumerate(encoded.dictionary.to_pylist())
    }


def commit_times(root: str, tables: Iterable[str]) -> list[CommitTime]:
    """From the log of each table, as its commits say; a compaction is no commit of records."""
    found = []
    for table in tables:
        for file in sorted((Path(root) / table / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            at_ms = next((a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a), 0)
            for action in actions:
                entry = _LEDGER_ENTRY.fullmatch(action.get("txn", {}).get("appId", ""))
                if entry is not None:
                    offset = int(action["txn"]["version"])
                    found.append(
                        CommitTime(at_ms, entry["topic_id"], f"{table}-{entry['number']}", offset)
                    )
    return sorted(found, key=lambda one: (one.at_ms, one.partition))
