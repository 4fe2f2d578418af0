"""The whole demo."""

from pathlib import Path

import pytest

from kit.group.demo import assert_the_demo_holds

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(600),
]


def test_the_demo_holds_what_it_says(tmp_path: Path) -> None:
    """Every record is stored once, all disruptions happened, and nothing is left running."""
    assert_the_demo_holds(tmp_path / "out", partitions=12, timeout_s=580)
