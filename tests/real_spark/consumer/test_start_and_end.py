"""How an incarnation begins, whatever the state directory holds, and how it ends in order."""

import json
import signal
import time

import pytest

from kit.consumer.consumers import (
    WAIT_S,
    ConsumerChild,
    Group,
    assert_exact,
    make_topic,
    wait_for,
    wait_rows,
)

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def stored(child: ConsumerChild) -> dict[str, object]:
    text = (child.state_directory / "state").read_text(encoding="utf-8")
    content = json.loads(text.splitlines()[1])
    assert isinstance(content, dict)
    return content


def test_ends_in_order_in_mid_batch_and_the_next_incarnation_reports_it(group: Group) -> None:
    """SIGINT while a batch runs: it is finished or dropped whole, and "controlled" is written."""
    topic, places = make_topic(group, "orderly", 2, 5_000, size=500)
    child = group.start(1)
    first = group.incarnation(1)
    group.command_start(1, places)
    wait_for("the partitions to be started", lambda: len(group.started(1)) == 2)
    wait_for("Spark", lambda: child.events("spark_ready"))
    time.sleep(0.5)  # somewhere inside the first batch
    began = time.monotonic()
    child.send(signal.SIGINT)
    assert child.process.wait(WAIT_S) == 0
    assert time.monotonic() - began < 30
    assert stored(child)["state"] == "controlled"
    stops = wait_for("the stops", lambda: len(group.stopped(1)) == 2 and group.stopped(1))
    assert {row.reason for row in stops.values()} == {"shutdown"}
    assert group.report(1).phase == "stopped"
    again = group.start(1)
    second = group.wait_new_incarnation(1, first)
    assert group.report(1).previous_shutdown == "controlled"
    group.command_start(1, places)
    wait_rows(group, topic, 10_000)
    # Everything may be in the lake already, from the incarnation before: wait for the start itself.
    wait_for("the new starts", lambda: len(group.started(1, incarnation=second)) == len(places))
    assert group.started(1, incarnation=second) == {
        one: row.next_offset for one, row in stops.items()
    }
    assert again.end() == 0
    assert_exact(group, topic)


def test_one_process_holds_the_directory(group: Group) -> None:
    """A second process with the same id exits at once with a reason."""
    group.start(1)
    group.incarnation(1)
    second = group.start(1)
    assert second.process.wait(WAIT_S) == 1
    assert "is held by another process" in second.log()


def test_a_broken_state_does_not_stop_a_start(group: Group) -> None:
    """A truncated state file is logged and ignored, and the last end counts as unknown."""
    place = group.folder / "state" / "consumer-1"
    place.mkdir(parents=True)
    (place / "state").write_bytes(b"penstock-state 1 penstock/consumer-1 sha256:12\n{")
    child = group.start(1)
    group.incarnation(1)
    assert group.report(1).previous_shutdown == "unknown"
    assert "checksum" in child.events("state_ignored")[0]["why"]
    assert child.end() == 0
    assert stored(child)["state"] == "controlled"


def test_a_place_that_cannot_be_written_does_not_stop_a_start(group: Group) -> None:
    """It warns, carries all the same, and ends with 0."""
    topic, places = make_topic(group, "unwritable", 1, 5)
    (group.folder / "file").write_text("", encoding="utf-8")
    child = group.start(1, state_root=str(group.folder / "file"))
    group.command_start(1, places)
    wait_rows(group, topic, 5)
    assert group.report(1).previous_shutdown == "unknown"
    assert child.events("state_not_saved")
    assert child.end() == 0
    assert_exact(group, topic)


def test_a_batch_that_does_not_end_within_the_grace_period_ends_the_process(group: Group) -> None:
    """A hanging batch: exit code 1, "running" stays, the next incarnation carries everything."""
    topic, places = make_topic(group, "hangs", 1, 10)
    child = group.start(1, at="before-commit", action="hang", grace="3s")
    first = group.incarnation(1)
    group.command_start(1, places)
    wait_for("the batch to hang", lambda: "hanging" in child.log())
    began = time.monotonic()
    assert child.end() == 1
    assert time.monotonic() - began < 10
    assert stored(child)["state"] == "running"
    again = group.start(1)
    group.wait_new_incarnation(1, first)
    assert group.report(1).previous_shutdown == "uncontrolled"
    group.command_start(1, places)
    wait_rows(group, topic, 10)
    assert again.end() == 0
    assert_exact(group, topic)


def test_without_a_mailbox_it_says_what_to_do(group: Group) -> None:
    """The control topics have no partition for this id: the error names the remedy."""
    child = group.start(30)
    assert child.process.wait(WAIT_S) == 3
    assert "penstock topics create --consumers 30" in child.log()
