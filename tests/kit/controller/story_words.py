"""The words of a story: names of options, and values as `name=value`."""

from typing import Any

from penstock.settings.tree import known_options


def option_named(name: str) -> str:
    """The full name of an option of `controller`, `packing` or `spark`."""
    sections = ("controller", "packing", "spark")
    return next(f"{one}.{name}" for one in sections if (one, name) in known_options())


def pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in text.split())]


def value_of(text: str) -> Any:
    if text in {"yes", "no"}:
        return text == "yes"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
