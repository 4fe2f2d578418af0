"""Which tables a consumer keeps in shape, when, and how long it rests after that."""

import pytest

from kit.consumer.consumer_script import A, B, Script
from penstock.consumer.core import inputs
from penstock.consumer.core.effects import KeepTables
from penstock.consumer.core.settings import core_settings, table_keepers
from penstock.consumer.core.table_upkeep import tables_to_keep
from penstock.errors import UnreachableError
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings

PERIOD_MS = 10_000


def test_tables_are_kept_by_default() -> None:
    """Once a minute, with a tenth of a core."""
    core = core_settings(Settings(), deployment_version=None)
    assert (core.upkeep_period_ms, core.upkeep_share) == (60_000, 0.1)


def test_tables_are_kept_once_a_period_and_never_twice_at_once() -> None:
    """The next time counts from the end of the last; a failure is only logged."""
    script = Script(upkeep_period_ms=PERIOD_MS).owning(A, B)
    script.wait(PERIOD_MS - 1)
    assert not script.did(KeepTables)
    script.wait(1)
    assert script.did(KeepTables) == [KeepTables(("orders",))]
    script.wait(60_000)
    assert not script.did(KeepTables), "the last one has not ended"
    script.take(inputs.TablesKept(script.now_ms))
    script.wait(PERIOD_MS)
    assert script.did(KeepTables)
    script.take(inputs.TablesNotKept(script.now_ms, UnreachableError("away")))
    assert script.logged() == ["table_not_kept_up"]
    script.wait(PERIOD_MS)
    assert script.did(KeepTables)


@pytest.mark.parametrize("partitions", [(), (B,)])
def test_who_does_not_carry_partition_0_keeps_no_table(
    partitions: tuple[TopicPartition, ...],
) -> None:
    """It is looked at again after the period: partitions come and go."""
    script = Script(upkeep_period_ms=PERIOD_MS).owning(*partitions)
    script.wait(PERIOD_MS)
    assert not script.did(KeepTables)
    script.owning(A)
    script.wait(PERIOD_MS)
    assert script.did(KeepTables) == [KeepTables(("orders",))]


def test_a_rest_is_ten_times_the_processor_time() -> None:
    """With a share of a tenth; a short run rests for the period, which is longer."""
    script = Script(upkeep_period_ms=PERIOD_MS, upkeep_share=0.1).owning(A)
    script.wait(PERIOD_MS)
    script.take(inputs.TablesKept(script.now_ms, processor_s=2.0))
    script.wait(19_999)
    assert not script.did(KeepTables)
    script.wait(1)
    assert script.did(KeepTables)
    script.take(inputs.TablesKept(script.now_ms, processor_s=0.5))
    script.wait(PERIOD_MS - 1)
    assert not script.did(KeepTables)
    script.wait(1)
    assert script.did(KeepTables)
    script.take(inputs.TablesNotKept(script.now_ms, UnreachableError("away"), processor_s=3.0))
    script.wait(29_999)
    assert not script.did(KeepTables)
    script.wait(1)
    assert script.did(KeepTables)


def test_what_is_left_over_waits_for_the_rest_only() -> None:
    """A table with a hundred thousand small files is joined at the same share, without pauses."""
    script = Script(upkeep_period_ms=PERIOD_MS, upkeep_share=0.5).owning(A)
    script.wait(PERIOD_MS)
    script.take(inputs.TablesKept(script.now_ms, processor_s=1.0, has_more=True))
    script.wait(1_999)
    assert not script.did(KeepTables)
    script.wait(1)
    assert script.did(KeepTables)


def test_a_consumer_that_shuts_down_keeps_no_table() -> None:
    """The running batch is waited for, and no work begins beside it."""
    script = Script(upkeep_period_ms=PERIOD_MS).owning(A).carrying(A)
    script.shut_down()
    script.wait(PERIOD_MS)
    assert not script.did(KeepTables)


def _partitions(*names: str) -> list[TopicPartition]:
    return [TopicPartition(name, 0) for name in names]


def test_one_consumer_keeps_a_table_that_several_topics_share() -> None:
    """The one with partition 0 of the topic that comes first by name."""
    lake = LakeSettings(tables={"b": {"table": "shared"}, "a": {"table": "shared"}, "c": {}})
    keepers = table_keepers(lake)
    assert tables_to_keep(_partitions("a"), keepers) == ("shared",)
    assert tables_to_keep(_partitions("b"), keepers) == ()
    assert tables_to_keep(_partitions("c", "other"), keepers) == ("c", "other")
    assert tables_to_keep([TopicPartition("a", 1), TopicPartition("c", 2)], keepers) == ()


def test_a_topic_with_a_table_of_another_name_keeps_no_table_of_its_own_name() -> None:
    """Unless another topic goes there."""
    lake = LakeSettings(tables={"a": {"table": "x"}, "b": {"table": "a"}})
    keepers = table_keepers(lake)
    assert tables_to_keep(_partitions("a"), keepers) == ("x",)
    assert tables_to_keep(_partitions("b"), keepers) == ("a",)


def test_dead_letters_are_kept_with_the_first_topic_that_is_transformed() -> None:
    """They have no topic of their own."""
    decodes = {"transformation": "shop.orders:decode"}
    lake = LakeSettings(tables={"c": decodes, "b": decodes, "a": {}})
    keepers = table_keepers(lake)
    assert tables_to_keep(_partitions("a"), keepers) == ("a",)
    assert tables_to_keep(_partitions("b"), keepers) == ("b", "penstock_dead_letters")
    assert tables_to_keep(_partitions("c"), keepers) == ("c",)
