"""What was written since a consumer looked at its logs: how much that is, by what is known."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.controller.core.inputs import LogExtent
from penstock.controller.core.waiting import Waiting, _written_since
from penstock.model import TopicPartition

A = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("behind_records", "behind_bytes", "expected"),
    [(10, 500.0, Waiting(20, 1_000.0)), (0, 0.0, Waiting(20, None))],
)
def test_without_the_logs_size_the_backlog_says_how_large_a_record_is(
    behind_records: int, behind_bytes: float, expected: Waiting
) -> None:
    """And where there is no backlog either, the size is unknown and not 0."""
    state: Any = SimpleNamespace(speeds=SimpleNamespace(logs={A: LogExtent(0, 130)}))
    record: Any = SimpleNamespace(
        next_offsets={A: 100},
        unread_records={A: 10},
        behind_records=behind_records,
        behind_bytes=behind_bytes,
    )
    assert _written_since(state, record, A) == expected
