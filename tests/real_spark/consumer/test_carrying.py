"""A consumer process obeys its mailbox and carries the partitions it is commanded to."""

import pytest

from kit.consumer.consumers import Group, add_records, assert_exact, make_topic, wait_for, wait_rows

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_carries_what_is_commanded_and_reports_it(group: Group) -> None:
    """Start, carry, query, stop, end in order: each is answered, every record is carried once."""
    topic, places = make_topic(group, "told", 4, 50)
    child = group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, 200)
    assert group.started(1) == dict.fromkeys(places, 0)
    answer = group.answer(1, group.ask(1))
    assert {row.topic_partition: row.next_offset for row in answer.owned} == dict.fromkeys(
        places, 50
    )
    group.command_stop(1, places[:2])
    wait_for("two stops", lambda: set(group.stopped(1)) == set(places[:2]))
    assert {row.next_offset for row in group.stopped(1).values()} == {50}
    add_records(group, topic, 4, 10)
    wait_rows(group, topic, 220)
    assert child.end() == 0
    assert group.group_offsets(places) == [50, 50, 60, 60]
    report = group.report(1)
    assert report.phase == "stopped"
    assert_exact(group, topic)
