"""A cache of one's own: brokers and Spark servers that examples start are noted down there."""

from pathlib import Path

import pytest

from kit.own_cache import make_own_cache


@pytest.fixture
def own_cache(tmp_path: Path) -> Path:
    """The jars are shared; what runs is not, so that nobody's broker is found or stopped."""
    return make_own_cache(tmp_path / "cache")
