"""What happens to unusual records: the table that docs/lake.md prints.

A test sends every one of them by both ways into the lake, reads it back with two readers, and
compares what it saw with the file that this table is made from.
"""

import json

from documents import ROOT

RESULTS = "tests/kit/lake/hostile_corpus.json"


def hostile_corpus_table() -> str:
    seen = json.loads((ROOT / RESULTS).read_text(encoding="utf-8"))
    rows = [
        f"| {case} | {_cell(ways, 'pass-through')} | {_cell(ways, 'connector')} |"
        for case, ways in seen.items()
    ]
    return "\n".join(
        ["| record | by pass-through | by the connector |", "| --- | --- | --- |", *rows]
    )


def _cell(ways: dict[str, str], way: str) -> str:
    refused = ways.get("refused by the broker")
    if refused is None:
        return ways[way]
    rest = "" if ways[way] == "nothing to carry" else f"; others {ways[way]}"
    return f"refused by the broker ({refused}){rest}"
