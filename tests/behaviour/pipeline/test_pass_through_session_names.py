"""The address under which the consumers of a group find their shared session."""

import uuid

import pytest

from penstock.pipeline.pass_through_session import shared_session_id
from penstock.pipeline.session import connect_address


def test_every_consumer_of_a_group_makes_the_same_ids() -> None:
    """One id a number, another for every group."""
    assert shared_session_id("shop", 0) == shared_session_id("shop", 0)
    ids = {shared_session_id(group, number) for group in ("shop", "bank") for number in range(5)}
    assert len(ids) == 10
    assert all(str(uuid.UUID(one)) == one for one in ids)


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("sc://host:1", "sc://host:1/;user_id=penstock;session_id=x"),
        ("sc://host:1/", "sc://host:1/;user_id=penstock;session_id=x"),
        (
            "sc://host:1/;token=t;user_id=me;use_ssl=true",
            "sc://host:1/;token=t;user_id=me;use_ssl=true;session_id=x",
        ),
    ],
)
def test_what_an_address_says_already_stays(master: str, expected: str) -> None:
    """The user is part of a session's name, so one is named unless the operator did."""
    assert connect_address(master, "x") == expected
