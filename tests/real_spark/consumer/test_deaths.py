"""kill -9 at every point of a cycle: the next incarnation goes on from the ledger."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from kit.consumer.consumers import (
    WAIT_S,
    Group,
    add_records,
    assert_exact,
    lake_rows,
    make_topic,
    wait_for,
    wait_rows,
)
from penstock.messages import ConsumerReport, RefusalReason

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.parametrize("point", ["planned", "files-written", "before-commit", "committed"])
def test_killed_at_a_point_of_its_second_batch(group: Group, point: str) -> None:
    """Killed before the read, with files on disk, before the commit, and before it is reported."""
    topic, places = make_topic(group, "killed", 3, 40)
    child = group.start(1, at=point, count=2)
    first = group.incarnation(1)
    group.command_start(1, places)
    wait_rows(group, topic, 120)
    add_records(group, topic, 3, 60)
    assert child.process.wait(WAIT_S) == -signal.SIGKILL
    carried = Counter(partition for partition, _ in lake_rows(group, topic))
    # A slow producer may have given the second batch only the first of the new records.
    assert (sum(carried.values()) > 120) == (point == "committed"), carried
    again = group.start(1)
    second = group.wait_new_incarnation(1, first)
    assert group.report(1).previous_shutdown == "uncontrolled"
    group.command_start(1, places)
    wait_rows(group, topic, 300)
    # Everything may be in the lake already, from the incarnation before: wait for the start itself.
    wait_for("the new starts", lambda: len(group.started(1, incarnation=second)) == len(places))
    starts = group.started(1, incarnation=second)
    assert starts == {place: carried[place.partition] for place in places}
    if point in {"files-written", "before-commit"}:
        # Only now has the ledger moved past the dead incarnation's batch.
        wait_for("the orphans to be removed", lambda: not _orphans(group, topic))
    assert again.end() == 0
    assert_exact(group, topic)
    files = set((Path(group.settings.lake.root) / topic / "data").rglob("*.parquet"))
    assert files


def _orphans(group: Group, topic: str) -> set[str]:
    from deltalake import DeltaTable  # noqa: PLC0415 - only this test compares files

    root = Path(group.settings.lake.root) / topic
    named = {Path(uri.removeprefix("file://")).name for uri in DeltaTable(root).file_uris()}
    # `walk` passes over folders that vanish meanwhile, and that is what is waited for.
    found = {name for _, _, names in os.walk(root / "data") for name in names}
    return {name for name in found if name.endswith(".parquet")} - named


def test_killed_while_spark_writes(group: Group) -> None:
    """It is killed while half of the files are written; nothing is lost or doubled."""
    topic, places = make_topic(group, "halfway", 4, 20_000, size=300)
    child = group.start(1)
    first = group.incarnation(1)
    group.command_start(1, places)
    data = Path(group.settings.lake.root) / topic / "data"
    wait_for("Spark to begin a file", lambda: list(data.rglob("*.parquet")))
    child.send(signal.SIGKILL)
    child.process.wait(60)
    group.start(1)
    group.wait_new_incarnation(1, first)
    group.command_start(1, places)
    wait_rows(group, topic, 80_000)
    assert_exact(group, topic)


def test_commands_for_a_former_incarnation_are_refused(group: Group) -> None:
    """Commands for a former incarnation are refused by the next, each with a reason."""
    _, places = make_topic(group, "stale", 2, 10)
    child = group.start(1, at="planned")
    first = group.incarnation(1)
    group.command_start(1, places)
    assert child.process.wait(WAIT_S) == -signal.SIGKILL
    head = {"consumer_id": 1, "incarnation": first, "controller_epoch": 1, "plan_number": 1}
    group.command_start(1, places)  # sent to the incarnation that was killed
    group.start(1)
    second = group.wait_new_incarnation(1, first)
    wait_for("a refusal", lambda: group.refusals(1))
    assert {one.reason for one in group.refusals(1)} == {RefusalReason.OTHER_INCARNATION}
    assert head["incarnation"] != second
    answer = group.answer(1, group.ask(1))
    assert answer.owned == ()
    assert [r for r in group.said(ConsumerReport, 1, incarnation=second) if r.owned] == []
