"""Foreign tools and our upkeep work on a table while a consumer's pipeline writes it."""

import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from kit.consumer.consumers import wait_for
from kit.in_a_loop import in_a_loop
from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.model import TopicPartition
from penstock.pipeline.upkeep import UpkeepReport, keep_up

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
PARTITIONS, RECORDS, AT_ONCE = 2, 80, 8
DELETED = "offset % 10 = 3"


def _foreign(name: str, place: str) -> None:
    table = DeltaTable(place)
    if name == "delete":
        table.delete(DELETED)
    elif name == "compact":
        table.optimize.compact()
    else:
        table.vacuum(dry_run=False)


def _places(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows)


def test_foreign_tools_beside_a_writer(make_carrier: Callable[..., Carrier]) -> None:
    """Compaction, deletion, vacuum and our upkeep: only what was deleted is missing, once each."""
    carrier = make_carrier(checkpoint_commits=4)
    topic = new_topic_name("foreign")
    place = f"{carrier.settings.lake.root}/{topic}"
    carrier.kafka.create_topic(topic, partitions=PARTITIONS)
    values = [b"value %d" % number for number in range(RECORDS)]
    produce(carrier.settings.kafka, topic, dict.fromkeys(range(PARTITIONS), values))
    for _ in range(2):
        assert not carrier.carry(carrier.plan(topic, at_most=AT_ONCE)).failures
    held = DeltaTable(place)
    held_rows = _places(held.to_pyarrow_table().to_pylist())
    done: list[str] = []
    reports: list[UpkeepReport] = []
    # Of deltalake's compactions only one may run at a time, and none beside ours: it does not see
    # that a file it replaces was replaced meanwhile (see test_compaction.py).
    one_compaction = threading.Lock()

    def foreign() -> None:
        for name in ("delete", "compact", "vacuum"):
            # A tool that lost a race says so and has changed nothing.
            with one_compaction, suppress(DeltaError):
                _foreign(name, place)
                done.append(name)

    def ours() -> None:
        with one_compaction:
            reports.extend(keep_up(carrier.settings.lake))

    with ExitStack() as stack:
        stack.enter_context(in_a_loop(foreign, lambda: 0.2))
        stack.enter_context(in_a_loop(ours, lambda: 0.3))
        while planned := carrier.plan(topic, at_most=AT_ONCE):
            assert not carrier.carry(planned).failures
        # Beside others of a busy machine a tool may have had no turn while the writer wrote.
        wait_for("each tool", lambda: {"delete", "compact", "vacuum"} <= set(done) and reports)
    DeltaTable(place).delete(DELETED)
    rows = DeltaTable(place).to_pyarrow_table().to_pylist()
    left = [number for number in range(RECORDS) if number % 10 != 3]
    assert _places(rows) == [(one, number) for one in range(PARTITIONS) for number in left]
    assert all(row["value"] == values[row["offset"]] for row in rows)
    ends = carrier.pipeline.next_offsets(
        {TopicPartition(topic, one): carrier.topic_id(topic) for one in range(PARTITIONS)}
    )
    assert set(ends.values()) == {RECORDS}
    for verdict in carrier.verify(topic).partitions:
        assert verdict.lost == RECORDS - len(left), "verify names what the tool deleted, no more"
        assert (verdict.duplicated, verdict.out_of_place, verdict.changed) == (0, 0, 0)
    assert _places(held.to_pyarrow_table().to_pylist()) == held_rows, "an old version changed"
