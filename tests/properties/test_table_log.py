"""Whatever happened to a table, the state read from its log is the one that deltalake reads."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.lake.log_histories import (
    NAMES,
    checkpoint,
    clean_up,
    described,
    log_of,
    make_table,
    move,
    replace_table,
    split_checkpoint,
    truth,
)
from penstock.model import TopicPartition
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.settings.sections import LakeSettings

Step: TypeAlias = Callable[[Path, LakeTable, int], object]


def _hint(place: Path) -> Path:
    return place / "_delta_log" / "_last_checkpoint"


def _our_commit(_: Path, ours: LakeTable, number: int) -> None:
    name = NAMES[number % 3]
    at = ours.next_offsets([name])[name]
    ours.commit([LedgerMove(TopicPartition("a", 0), name, at, number)], [], batch=f"{number}")


def _old_hint(place: Path, _: LakeTable, __: int) -> None:
    found = sorted(place.glob("_delta_log/*.checkpoint.parquet"))
    if found:
        _hint(place).write_text(json.dumps({"version": int(found[0].name[:20]), "size": 1}))


STEPS: dict[str, Step] = {
    "our commit": _our_commit,
    "another commit of ours": _our_commit,
    "their commit": lambda place, _, number: move(place, {NAMES[number % 3]: number}),
    "a column": lambda place, _, number: DeltaTable(str(place)).alter.add_columns(
        [Field(f"c{number}", PrimitiveType("long"))]
    ),
    "a property": lambda place, _, number: DeltaTable(str(place)).alter.set_table_properties(
        {"delta.targetFileSize": str(number)}
    ),
    "a checkpoint": lambda place, _, __: checkpoint(place),
    "a checkpoint in parts": lambda place, _, __: split_checkpoint(place, checkpoint(place), 2),
    "clean up": lambda place, _, __: clean_up(place),
    "lose the hint": lambda place, _, __: _hint(place).unlink(missing_ok=True),
    "an old hint": _old_hint,
    "made again": lambda place, _, number: replace_table(place, number % 4),
    "a look": lambda _, ours, __: ours.next_offsets(NAMES),
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=14))
def test_our_state_is_that_of_deltalake(steps: list[str]) -> None:
    """After every step, for one who has looked all the time and for one who never has."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "orders"
        make_table(place)
        ours = LakeTable(LakeSettings(root=folder), "orders")
        watching = log_of(place)
        for number, step in enumerate(steps, start=1):
            STEPS[step](place, ours, number)
            expected = truth(place)
            assert described(watching.newest()) == expected
            assert described(log_of(place).newest()) == expected
            assert ours.next_offsets(NAMES) == expected["ledger"]
