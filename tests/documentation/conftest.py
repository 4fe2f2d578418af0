"""A cache of one's own: brokers and Spark servers that examples start are noted down there."""

from pathlib import Path

import pytest

from penstock.jars import cache_directory


@pytest.fixture
def own_cache(tmp_path: Path) -> Path:
    """The jars are shared; what runs is not, so that nobody's broker is found or stopped."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(cache_directory() / "jars", target_is_directory=True)
    return cache
