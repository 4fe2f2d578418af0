"""Lists in sentences for people."""

from collections.abc import Sequence


def some(names: Sequence[str], most: int = 5) -> str:
    """The first few, and how many more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
