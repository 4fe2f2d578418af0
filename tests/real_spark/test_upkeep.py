"""Compaction, sweeping and vacuum beside running writers."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kit.consumer.consumers import wait_for
from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.pipeline.upkeep import UpkeepReport, keep_up, remove_orphans_of

pytestmark = [pytest.mark.broker, pytest.mark.spark]
MakeCarrier = Callable[..., Carrier]


def _topic(carrier: Carrier, records: int) -> str:
    topic = new_topic_name("upkeep")
    carrier.kafka.create_topic(topic, partitions=2)
    values = [f"value {number}".encode() for number in range(records)]
    produce(carrier.settings.kafka, topic, {0: values, 1: values})
    return topic


def test_compaction_beside_a_running_writer(make_carrier: MakeCarrier) -> None:
    """Files are joined while batches commit; no record, offset or commit is disturbed."""
    carrier = make_carrier(removed_file_retention="0s", checkpoint_commits=3)
    topic = _topic(carrier, 40)
    for _ in range(3):
        carrier.carry(carrier.plan(topic, at_most=5))
    stop = threading.Event()
    reports: list[UpkeepReport] = []

    def compact() -> None:
        while not stop.wait(0.3):
            reports.extend(keep_up(carrier.settings.lake))

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        for number in range(5):
            assert not carrier.carry(carrier.plan(topic, at_most=5)).failures
            if number == 2:
                wait_for("joined files", lambda: any(one.bytes_rewritten for one in reports))
    finally:
        stop.set()
        thread.join()
    reports.extend(keep_up(carrier.settings.lake))
    assert sum(report.bytes_rewritten > 0 for report in reports) >= 2
    verdict = carrier.verify(topic)
    assert verdict.is_exact
    assert sum(one.lake for one in verdict.partitions) == 80
    table = DeltaTable(f"{carrier.settings.lake.root}/{topic}")
    assert len(table.file_uris()) == 1
    on_disk = list(Path(carrier.settings.lake.root, topic).rglob("*.parquet"))
    data = [path for path in on_disk if "_delta_log" not in path.parts]
    assert len(data) == 1, "vacuum left files, or took some"


def test_a_sweep_leaves_a_paused_writer_its_files(make_carrier: MakeCarrier) -> None:
    """A writer paused before its commit finds its files after a sweep, and commits."""
    carrier = make_carrier()
    topic = _topic(carrier, 10)
    carrier.carry(carrier.plan(topic, at_most=3))
    swept: list[UpkeepReport] = []

    def sweep(point: str) -> None:
        if point == "before-commit":
            swept.extend(keep_up(carrier.settings.lake))

    carrier.pipeline._at_point = sweep
    assert carrier.carry_all(topic).records == 14
    assert [report.orphans_removed for report in swept] == [0]
    assert carrier.verify(topic).is_exact


def test_what_a_dead_incarnation_left_goes_once_the_ledger_has_moved(
    make_carrier: MakeCarrier,
) -> None:
    """It may still live on another node; after the next commit it can commit nothing any more."""
    carrier = make_carrier()
    topic = _topic(carrier, 10)
    carrier.carry(carrier.plan(topic, at_most=3))

    def die(point: str) -> None:
        if point == "files-written":
            raise KeyboardInterrupt

    carrier.pipeline._at_point = die
    with pytest.raises(KeyboardInterrupt):
        carrier.carry_all(topic)
    lake = carrier.settings.lake
    assert [report.orphans_removed for report in keep_up(lake)] == [0], "it might be paused"
    assert remove_orphans_of(lake, 1) == 0, "nor may a new incarnation remove them"
    second = make_carrier(1, 2)
    assert second.carry_all(topic).records == 14
    assert remove_orphans_of(lake, 1) >= 1
    assert remove_orphans_of(lake, 1) == 0
    assert second.verify(topic).is_exact
