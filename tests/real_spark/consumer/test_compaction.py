"""A consumer joins the small files of its table by itself, and ends as usual."""

import pytest
from deltalake import DeltaTable

from kit.consumer.consumers import (
    Group,
    MakeGroup,
    add_records,
    assert_exact,
    make_topic,
    wait_for,
    wait_rows,
)

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
BATCHES = 18


def _files(group: Group, topic: str) -> int:
    return len(DeltaTable(f"{group.settings.lake.root}/{topic}").file_uris())


def test_a_consumer_joins_small_files_by_itself(make_group: MakeGroup) -> None:
    """By default; here every second. Nothing is lost or doubled."""
    group = make_group(lake={"compact_period": "1s", "compact_share": 1.0})
    topic, places = make_topic(group, "joined", 1, 1)
    child = group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, 1)
    for number in range(1, BATCHES):
        add_records(group, topic, 1, 1)
        wait_rows(group, topic, number + 1)
    wait_for("joined files", lambda: _files(group, topic) < BATCHES / 2)
    assert_exact(group, topic)
    assert child.end() == 0
