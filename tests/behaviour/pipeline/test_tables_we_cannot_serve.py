"""A table whose rules we would break is refused before the first record, with the rule's name."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.model import TopicPartition
from penstock.pipeline import TableNotServedError
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.settings.sections import LakeSettings

MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
MAPS = {"minReaderVersion": 2, "minWriterVersion": 5}


def _field(
    name: str, kind: str, metadata: dict[str, Any] | None = None, *, nullable: bool = True
) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata or {}}


def _schema(*fields: dict[str, Any]) -> str:
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    offset = _field("offset", "long", mapping)
    return json.dumps({"type": "struct", "fields": [offset, *fields]})


def _made_by_another_tool(
    root: Path,
    *fields: dict[str, Any],
    configuration: dict[str, str] | None = None,
    protocol: dict[str, Any] | None = None,
    version: int = 0,
) -> LakeTable:
    log = root / "orders" / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    metadata = {
        "id": "5c2fd8a7-3f0b-4d6c-9d3a-4e1a52d0a001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _schema(*fields),
        "partitionColumns": [],
        "configuration": configuration or {},
        "createdTime": 1,
    }
    actions = [
        {"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 4}},
        {"metaData": metadata},
    ]
    lines = "\n".join(json.dumps(action) for action in actions)
    (log / f"{version:020d}.json").write_text(lines, encoding="utf-8")
    return LakeTable(LakeSettings(root=str(root)), "orders")


def _features(*writer: str) -> dict[str, Any]:
    return {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": list(writer),
    }


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ({"configuration": MAPPED, "protocol": MAPS}, "column mapping"),
        ({"configuration": {"delta.constraints.positive": "offset > 0"}}, "positive"),
        (
            {"configuration": {"delta.setTransactionRetentionDuration": "interval 7 days"}},
            "may expire",
        ),
        ({"protocol": _features("appendOnly", "rowTracking")}, "rowTracking"),
        ({"protocol": _features("somethingNew")}, "somethingNew"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}, "version 6"),
    ],
)
def test_a_rule_of_the_table_is_named(tmp_path: Path, made: dict[str, Any], named: str) -> None:
    """Column mapping, a constraint, a ledger that expires, or a writer feature that is not ours."""
    table = _made_by_another_tool(tmp_path, **made)
    with pytest.raises(TableNotServedError, match=named) as refused:
        table.open_for(_schema(), ())
    assert refused.value.is_lasting
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("field", "named"),
    [
        (_field("day", "date", {"delta.generationExpression": "CAST(t AS DATE)"}), "generated"),
        (
            _field("number", "long", {"delta.identity.start": 1, "delta.identity.step": 1}),
            "ident",
        ),
        (_field("id", "long", {"delta.invariants": '{"expression":{}}'}), "invariant"),
        (_field("id", "long", {"CURRENT_DEFAULT": "7"}), "default"),
        (_field("id", "long", nullable=False), "NOT NULL"),
    ],
)
def test_a_rule_of_a_column_is_named(tmp_path: Path, field: dict[str, Any], named: str) -> None:
    """Generated and identity columns, invariants, defaults and columns that must have a value."""
    table = _made_by_another_tool(tmp_path, field)
    with pytest.raises(TableNotServedError, match=named) as refused:
        table.open_for(_schema(), ())
    assert field["name"] in str(refused.value)


def test_a_rule_that_comes_later_stops_the_next_commit(tmp_path: Path) -> None:
    """Another tool adds a constraint while we write: nothing more is committed."""
    table = _made_by_another_tool(tmp_path)
    table.open_for(_schema(), ())
    move = LedgerMove(TopicPartition("orders", 0), "g/id/0", None, 3)
    _made_by_another_tool(
        tmp_path, configuration={"delta.constraints.small": "offset < 9"}, version=1
    )
    with pytest.raises(TableNotServedError, match="small"):
        table.commit([move], [], batch="b1")
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": None}


@pytest.mark.parametrize(
    "made",
    [
        {"protocol": _features("appendOnly", "invariants", "checkConstraints")},
        {"configuration": {"delta.columnMapping.mode": "none", "delta.appendOnly": "true"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"protocol": MAPS},
    ],
)
def test_a_feature_that_is_not_used_does_no_harm(tmp_path: Path, made: dict[str, Any]) -> None:
    """A table may allow constraints and have none."""
    table = _made_by_another_tool(tmp_path, **made)
    table.open_for(_schema(), ())
    move = LedgerMove(TopicPartition("orders", 0), "g/id/0", None, 3)
    table.commit([move], [], batch="b1")
    assert table.next_offsets(["g/id/0"]) == {"g/id/0": 3}
