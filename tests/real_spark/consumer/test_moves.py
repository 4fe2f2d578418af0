"""Partitions come and go while a batch runs; the others never wait for them."""

import signal
import statistics
import time
from datetime import datetime
from typing import Any

import pytest

from kit.consumer.consumers import (
    ConsumerChild,
    Group,
    add_records,
    assert_exact,
    make_topic,
    wait_for,
    wait_rows,
)

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_a_moved_partition_goes_on_where_it_was_and_the_others_do_not_stop(group: Group) -> None:
    """A stop during a batch waits for that batch only; the new owner starts where it ended."""
    topic, places = make_topic(group, "moved", 4, 3_000, size=300)
    children = [group.start(number) for number in (1, 2)]
    group.command_start(1, places)
    wait_for("the first commit", lambda: children[0].events("batch_carried"))
    add_records(group, topic, 4, 3_000, size=300)
    group.command_stop(1, places[:1])
    stop = wait_for("the stop", lambda: group.stopped(1).get(places[0]))
    group.command_start(2, places[:1])
    wait_for("the new start", lambda: group.started(2))
    assert group.started(2) == {places[0]: stop.next_offset}
    add_records(group, topic, 4, 10)
    wait_rows(group, topic, 24_040)
    assert set(group.stopped(1)) == {places[0]}
    assert [child.end() for child in children] == [0, 0]
    assert_exact(group, topic)


def test_commands_and_questions_are_heard_while_a_batch_runs(group: Group) -> None:
    """With a batch that hangs, a query is answered, and a stop waits for that batch alone."""
    topic, places = make_topic(group, "heard", 2, 20)
    child = group.start(1, at="before-commit", action="hang")
    group.command_start(1, places)
    wait_for("the batch to hang", lambda: "hanging" in child.log())
    # The batch hangs until the end of this test: who waited for it would not answer at all.
    answer = group.answer(1, group.ask(1))
    assert len(answer.owned) == 2
    other, more = make_topic(group, "other", 1)
    group.command_start(1, more)
    wait_for("the start to be said", lambda: more[0] in group.started(1))
    group.command_stop(1, places[:1])
    query = group.ask(1)
    time.sleep(0.5)
    assert places[0] not in group.stopped(1)
    assert not [one for one in group.heard if getattr(one, "query_number", 0) == query]
    child.send(signal.SIGKILL)
    child.process.wait(60)
    assert topic != other


def test_idle_it_uses_next_to_nothing_and_answers_at_once(group: Group) -> None:
    """Twenty-four quiet partitions: little CPU, and an answer within 100 ms (median of twenty)."""
    _, places = make_topic(group, "quiet", 24)
    child = group.start(1)
    group.command_start(1, places)
    wait_for("the starts", lambda: len(group.started(1)) == 24)
    wait_for("Spark", lambda: child.events("spark_ready"))
    time.sleep(2)
    used, began = child.cpu_s(), time.monotonic()
    time.sleep(4)
    share = (child.cpu_s() - used) / (time.monotonic() - began)
    waits = []
    for _ in range(20):
        time.sleep(0.1)
        waits.append(group.time_to_answer_s(1))
    assert statistics.median(waits) <= 0.1, waits
    assert share < 0.05
    assert child.memory_mb() < 250


def test_lag_tools_see_the_offsets_and_reports_tell_the_measures(group: Group) -> None:
    """The Kafka group has what the ledger has; the reports add up to what was carried."""
    topic, places = make_topic(group, "shown", 3, 100, size=1_000)
    group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, 300)
    wait_for("the group's offsets", lambda: group.group_offsets(places) == [100, 100, 100])

    def told() -> bool:
        cycles = [one.cycle for one in group.reports(1) if one.cycle is not None]
        return sum(one.records for one in cycles) == 300

    wait_for("the cycle in the reports", told)
    cycles = [one.cycle for one in group.reports(1) if one.cycle is not None]
    assert sum(one.decoded_bytes for one in cycles) > 300_000
    # The log holds each record in about 1 kB, as the producer did not compress.
    assert 250_000 < sum(one.log_bytes for one in cycles) < 400_000
    last = group.report(1)
    assert {row.end_offset for row in last.owned} == {100}
    assert last.behind_records == 0


def test_a_capacity_that_is_set_is_not_exceeded(group: Group) -> None:
    """400 kB at 100 kB/s: no batch takes more than its time has brought, however long one lasts."""
    topic, places = make_topic(group, "slow", 2, 200, size=1_000)
    child = group.start(1, capacity="100kB/s")
    group.command_start(1, places)
    wait_rows(group, topic, 400)
    wait_for("every batch in the log", lambda: sum(_records(child)) == 400)
    batches = child.events("batch_carried")
    begun_s = [_at_s(row) - row["seconds"] for row in batches]
    # A process may wait for its turn before it logs: the earlier of two times is the right one.
    begun_s[0] = min(begun_s[0], _at_s(child.events("batch_begins")[0]))
    # The first takes all that was saved up. What comes after it has to be waited for.
    taken_bytes = 0.0
    for began_s, records in list(zip(begun_s, _records(child), strict=True))[1:]:
        taken_bytes += records * 1_000
        assert taken_bytes <= 100_000 * (began_s - begun_s[0] + 0.5)
    assert len(batches) >= 2
    assert_exact(group, topic)


def _at_s(row: dict[str, Any]) -> float:
    return datetime.fromisoformat(row["timestamp"]).timestamp()


def _records(child: ConsumerChild) -> list[int]:
    return [row["records"] for row in child.events("batch_carried")]
