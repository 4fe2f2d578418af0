"""Which tables of a batch may go through Spark together."""

from typing import Any

from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.shared_pass import shared_groups
from penstock.settings.sections import LakeSettings


def _planned(topic: str, topic_id: str = "") -> PlannedRange:
    return PlannedRange(OffsetRange(TopicPartition(topic, 0), 0, 5), topic_id or f"id-{topic}")


def _groups(
    *topics: str, is_local: bool = True, tables: dict[str, dict[str, Any]] | None = None
) -> list[list[str]]:
    lake = LakeSettings.model_validate({"tables": tables or {}})
    by_table: dict[str, list[PlannedRange]] = {}
    for topic in topics:
        by_table.setdefault(lake.table_of(topic).table, []).append(_planned(topic))
    return shared_groups(lake, by_table, is_local=is_local)


def test_topics_alike_go_together() -> None:
    """Nothing but their name differs: one group."""
    assert _groups("c", "a", "b") == [["a", "b", "c"]]


def test_one_alone_is_no_group() -> None:
    """A single table has its own pass."""
    assert _groups("a") == []


def test_an_object_store_has_no_groups() -> None:
    """Renaming there would copy."""
    assert _groups("a", "b", is_local=False) == []


def test_a_transformation_keeps_its_topic_apart() -> None:
    """Whatever a user's function does, it does to its own topic alone."""
    tables = {"b": {"transformation": "package.module:function"}}
    assert _groups("a", "b", "c", tables=tables) == [["a", "c"]]


def test_tables_of_different_form_are_grouped_by_their_form() -> None:
    """Columns and folders are one pass's own; a table's name is not."""
    dated: dict[str, Any] = {"partition_by": ["date"]}
    tables = {"b": dated, "d": {**dated, "table": "renamed"}}
    assert _groups("a", "b", "c", "d", tables=tables) == [["a", "c"], ["b", "renamed"]]


def test_a_table_of_several_topics_has_its_own_pass() -> None:
    """Their rows lie in the same files, which the topic's folder could not tell apart."""
    tables = {"a": {"table": "both"}, "b": {"table": "both"}}
    assert _groups("a", "b", "c", "d", tables=tables) == [["c", "d"]]
