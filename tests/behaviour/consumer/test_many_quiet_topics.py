"""A thousand topics, most of them quiet: what has nothing to carry costs next to nothing."""

from typing import Any

import pytest

from kit.consumer.consumer_script import Script
from penstock.consumer.core import step_draft
from penstock.consumer.core.effects import CarryBatch, ReadEnds, ReadLedger, ReadLogSizes
from penstock.consumer.core.ownership import readable
from penstock.model import Epoch, TopicPartition

TOPICS = [TopicPartition(f"topic-{number:04d}", 0) for number in range(1000)]
BUSY = TOPICS[500]


def owning_many(count: int) -> Script:
    """They are started by one command, are empty, and have no size in any log."""
    script = Script()
    script.start(*((one, "1.1") for one in TOPICS[:count]))
    script.ledgers(dict.fromkeys(TOPICS[:count], Epoch(1, 1)), 10)
    script.spark()
    script.ends(dict.fromkeys(TOPICS[:count], 10))
    return script


def look(script: Script) -> None:
    """Until the next look is under way."""
    while not script.did(ReadEnds):
        script.wait_until_due()


def test_a_batch_names_only_what_has_records() -> None:
    """No table but one is opened, written or looked at."""
    script = owning_many(1000)
    look(script)
    script.ends({**dict.fromkeys(TOPICS, 10), BUSY: 15})
    (batch,) = script.did(CarryBatch)
    assert [one.range.partition for one in batch.ranges] == [BUSY]
    assert not script.did(ReadLedger)


def test_a_look_takes_as_many_passes_over_few_partitions_as_over_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What can be read is collected a few times in a step, not once for every partition."""
    passes: list[int] = []

    def counted(owned: Any) -> Any:
        passes.append(len(owned))
        return readable(owned)

    monkeypatch.setattr(step_draft, "readable", counted)
    taken = []
    for count in (10, 1000):
        script = owning_many(count)
        look(script)
        passes.clear()
        script.ends(dict.fromkeys(TOPICS[:count], 10))
        taken.append(len(passes))
    assert taken[0] == taken[1] < 10


def asks_for_sizes_after_ms(script: Script) -> int:
    """While it goes on looking at its quiet partitions."""
    since, quiet = script.now_ms, dict.fromkeys(TOPICS[:3], 10)
    while not script.did(ReadLogSizes):
        if script.did(ReadEnds):
            script.ends(quiet)
        else:
            script.wait_until_due()
    return script.now_ms - since


def test_empty_logs_are_not_asked_for_their_size_again_and_again() -> None:
    """They have none. With their first records they are asked soon, until there is one."""
    script = owning_many(3)
    script.sizes({})
    assert asks_for_sizes_after_ms(script) == 30_000
    script.sizes({})
    look(script)
    script.ends({TOPICS[0]: 15})
    assert script.did(CarryBatch)
    began_ms = script.now_ms
    script.batch_ends({TOPICS[0]: 15})
    while not script.did(ReadLogSizes):
        script.wait_until_due()
    assert script.now_ms - began_ms == 2_000
    script.sizes({})
    assert asks_for_sizes_after_ms(script) == 2_000, "its log has records, but no size was told"
    script.sizes({TOPICS[0]: 12.5})
    assert asks_for_sizes_after_ms(script) == 30_000
