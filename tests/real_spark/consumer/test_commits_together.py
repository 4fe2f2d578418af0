"""Real consumers of one table, of which one commits for all; it is killed, and another goes on."""

import json
import signal
from pathlib import Path

import pytest

from kit.consumer.consumers import (
    Group,
    MakeGroup,
    add_records,
    assert_exact,
    make_topic,
    wait_for,
    wait_rows,
)
from penstock.committer.core.duty import committer_of
from penstock.pipeline.log_entries import BATCH_KEY, BATCHES_KEY

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
CONSUMERS = (1, 2, 3)


def _joint(group: Group, topic: str) -> list[str]:
    """The batches that another consumer than their own has committed."""
    log = Path(group.settings.lake.root) / topic / "_delta_log"
    found = []
    for file in sorted(log.glob("*.json")):
        info = json.loads(file.read_text(encoding="utf-8").splitlines()[0]).get("commitInfo", {})
        own = info.get(BATCH_KEY, "").rpartition("/")[0]
        found += [one for one in info.get(BATCHES_KEY, []) if not one.startswith(f"{own}/")]
    return found


def test_one_commits_for_all_and_may_die(
    make_group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record is there once, before and after; who is told to end leaves in order."""
    monkeypatch.setenv("TEST_WRITERS_ALONE_MAX", "1")
    group = make_group(lake={"commits": "together"})
    topic, places = make_topic(group, "together", len(CONSUMERS), 10)
    children = {number: group.start(number, at="never") for number in CONSUMERS}
    first = {number: group.incarnation(number) for number in CONSUMERS}
    for number, place in zip(CONSUMERS, places, strict=True):
        group.command_start(number, [place])
    records = 10

    def more() -> None:
        nonlocal records
        add_records(group, topic, len(CONSUMERS), 5)
        records += 5

    def has_joint(count: int) -> bool:
        more()
        return len(_joint(group, topic)) >= count

    wait_for("commits for others", lambda: has_joint(3))
    dies = committer_of(topic, CONSUMERS)
    children[dies].send(signal.SIGKILL)
    children[dies].process.wait(60)
    more()
    children[dies] = group.start(dies, at="never")
    group.wait_new_incarnation(dies, first[dies])
    group.command_start(dies, [places[CONSUMERS.index(dies)]])
    before = len(_joint(group, topic))
    wait_for("commits for others again", lambda: has_joint(before + 3))
    wait_rows(group, topic, records * len(CONSUMERS))
    for child in children.values():
        assert child.end() == 0
    assert_exact(group, topic)
