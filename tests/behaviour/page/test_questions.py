"""From the options behind an address to a question."""

import pytest

from penstock.page.core.listing import BadQueryError, PartitionQuery
from penstock.page.core.questions import (
    asks_for_partitions,
    history_query,
    only,
    partition_query,
    timeline_query,
)


def test_nothing_given() -> None:
    """The defaults."""
    assert partition_query({}) == PartitionQuery()
    assert history_query({}).limit == 100
    assert timeline_query({}).points == 300
    assert not asks_for_partitions({})
    only({})


def test_everything_given() -> None:
    """Each option in its place."""
    given = {
        "topic": ["orders"],
        "consumer": ["3"],
        "state": ["hot"],
        "sort": ["-speed"],
        "limit": ["5"],
        "after": ["x"],
    }
    expected = PartitionQuery("orders", 3, "hot", "-speed", 5, "x")
    assert partition_query(given) == expected
    found = history_query({"code": ["plan_made", "plan_done"], "since": ["7"], "limit": ["2"]})
    assert sorted(found.codes) == ["plan_done", "plan_made"]
    assert (found.since_unix_ms, found.limit) == (7, 2)
    span = timeline_query({"from": ["1"], "to": ["2"], "points": ["10"], "topic": ["orders"]})
    assert (span.from_unix_ms, span.to_unix_ms, span.topic) == (1, 2, "orders")
    assert asks_for_partitions({"with": ["partitions"]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": ["0"]}, "whole number from 1 to 1000"),
        ({"limit": ["9" * 5000]}, "whole number"),
        ({"limit": ["\N{FULLWIDTH DIGIT ONE}"]}, "whole number"),
        ({"limit": ["1", "2"]}, "once"),
        ({"consumer": ["-1"]}, "whole number"),
        ({"state": ["sleepy"]}, "one of owned"),
        ({"sort": ["owner"]}, "one of name"),
        ({"topic": ["<b>"]}, "name of a Kafka topic"),
        ({"topics": ["orders"]}, "no option 'topics'; it has topic"),
    ],
)
def test_what_is_not_understood(given: dict[str, list[str]], message: str) -> None:
    """Is refused with what would be right."""
    with pytest.raises(BadQueryError, match=message):
        partition_query(given)


def test_other_routes_refuse_too() -> None:
    """A code that does not exist, and an option where there is none."""
    with pytest.raises(BadQueryError, match="no code 'nonsense'"):
        history_query({"code": ["nonsense"]})
    with pytest.raises(BadQueryError, match=r"no option 'limit'\."):
        only({"limit": ["1"]})
