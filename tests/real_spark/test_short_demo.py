"""The demo in its short form: the live group's whole job, in a minute and a half."""

from pathlib import Path

import pytest

from kit.group.demo import assert_the_demo_succeeds

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


def test_the_short_demo_holds_what_it_says(tmp_path: Path) -> None:
    """It grows, loses a consumer, its controller during a move, shrinks; every record once."""
    assert_the_demo_succeeds(tmp_path / "out", "--short", partitions=6, timeout_s=280)
