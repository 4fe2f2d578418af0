"""Reads YAML that a person or a program wrote, within bounds.

YAML has aliases: a text of one line can name itself, or stand for more values than fit into any
memory. And its library raises whatever Python raises for a date or a number that is none.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from penstock.errors import SettingsError

VALUES_MAX = 100_000
DEPTH_MAX = 50


def read_yaml(text: str, what: str, *, remedy: str = "") -> Any:
    """The content. SettingsError, which begins with `what`, for anything that is not sound YAML."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        place = f", line {where.line + 1}, column {where.column + 1}" if where else ""
        raise SettingsError(f"{what}{place}: not valid YAML.", remedy=remedy) from None
    except RecursionError:
        raise _too_much(what) from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise SettingsError(
            f"{what}: not valid YAML: a value is not what its form or tag says.", remedy=remedy
        ) from None
    _Bounds(what).require(content, 0)
    return content


class _Bounds:
    def __init__(self, what: str) -> None:
        self._what = what
        self._values = 0

    def require(self, content: Any, depth: int) -> None:
        self._values += 1
        if depth > DEPTH_MAX or self._values > VALUES_MAX:
            raise _too_much(self._what)
        if isinstance(content, Mapping):
            for name, below in content.items():
                self.require(name, depth + 1)
                self.require(below, depth + 1)
        elif isinstance(content, list | tuple | set):
            for below in content:
                self.require(below, depth + 1)


def _too_much(what: str) -> SettingsError:
    return SettingsError(
        f"{what}: more than {VALUES_MAX} values, or nested deeper than {DEPTH_MAX}.",
        remedy="An alias (*name) stands for all that its anchor (&name) has: use fewer.",
    )
