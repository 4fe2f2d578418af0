"""The whole demo."""

from pathlib import Path

import pytest

from kit.group.demo import assert_the_demo_succeeds

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(600),
]


def test_the_demo_succeeds(tmp_path: Path) -> None:
    """Every record is stored once, all disruptions happened, and nothing is left running."""
    assert_the_demo_succeeds(tmp_path / "out", partitions=12, timeout_s=580)
