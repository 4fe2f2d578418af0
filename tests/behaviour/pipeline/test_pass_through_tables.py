"""Which tables of a batch take the pass-through way."""

from typing import Any

import pytest

from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.pass_through_tables import (
    all_pass_through,
    columns_of,
    pass_through_tables,
)
from penstock.settings import Settings, changed_settings
from penstock.settings.sections import LakeSettings, TableSettings


def _pass_through(*topics: str, tables: dict[str, dict[str, Any]] | None = None) -> list[str]:
    lake = LakeSettings.model_validate({"tables": tables or {}})
    by_table: dict[str, list[PlannedRange]] = {}
    for topic in topics:
        planned = PlannedRange(OffsetRange(TopicPartition(topic, 0), 0, 5), f"id-{topic}")
        by_table.setdefault(lake.table_of(topic).table, []).append(planned)
    return pass_through_tables(lake, by_table)


def test_topics_without_a_transformation_pass_through() -> None:
    """One or many, whatever their columns and dates."""
    dated: dict[str, Any] = {"partition_by": ["date"]}
    tables = {"b": dated, "d": {"table": "renamed", "columns": ["offset", "value"]}}
    assert _pass_through("c", "a", "b", "d", tables=tables) == ["a", "b", "c", "renamed"]
    assert _pass_through("a") == ["a"]


@pytest.mark.parametrize(
    "other",
    [
        {"transformation": "package.module:function"},
        {"partition_by": ["topic"]},
        {"columns": ["offset", "price"]},
    ],
)
def test_what_needs_more_goes_the_other_way(other: dict[str, Any]) -> None:
    """A function, folders by another column, or a column that records do not have."""
    assert _pass_through("a", "b", "c", tables={"b": other}) == ["a", "c"]


def test_a_table_of_several_topics_has_its_own_pass() -> None:
    """Their rows lie in the same files, which the topic's folder could not tell apart."""
    tables = {"a": {"table": "both"}, "b": {"table": "both"}}
    assert _pass_through("a", "b", "c", "d", tables=tables) == ["c", "d"]


def test_columns_are_those_of_the_other_way() -> None:
    """All of Kafka's columns, the date last; or those the settings name, in their order."""
    assert columns_of(TableSettings())[-1] == "headers"
    assert columns_of(TableSettings(partition_by=["date"]))[-2:] == ["headers", "date"]
    assert columns_of(TableSettings(columns=["value", "key"])) == ["value", "key"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"lake.tables": {"a": {"partition_by": ["date"]}, "b": {}}}, True),
        ({"lake.tables": {"a": {}, "b": {"transformation": "package.module:function"}}}, False),
        ({"lake.tables": {"a": {"table": "both"}, "b": {"table": "both"}}}, False),
        ({"spark.pass_through": False}, False),
    ],
)
def test_whether_all_topics_pass_through(changes: dict[str, Any], expected: bool) -> None:
    """A transformation, two topics in one table, or the setting sends a topic the other way."""
    assert all_pass_through(changed_settings(Settings(), changes)) is expected
