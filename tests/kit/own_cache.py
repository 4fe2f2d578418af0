"""A cache of a test's own that shares what is only read: jars, and the classes Java has kept.

What runs is noted down in a cache, so that with one of its own a test neither finds nor stops the
broker or the Spark server of anybody else.
"""

from pathlib import Path

from penstock.jars import cache_directory


def make_own_cache(place: Path, *, shares_jars: bool = True) -> Path:
    """Without shared classes every Spark server would start with twice the processor time."""
    place.mkdir(exist_ok=True)
    names = ("jars", "class-archives") if shares_jars else ("class-archives",)
    for name in names:
        (place / name).symlink_to(cache_directory() / name, target_is_directory=True)
    return place
