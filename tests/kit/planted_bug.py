"""A planted bug: its name, what it breaks, how it is planted, and in which files that is."""

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

Sabotage = Callable[[pytest.MonkeyPatch], None]


@dataclasses.dataclass(frozen=True, slots=True)
class PlantedBug:
    name: str
    explanation: str
    plant: Sabotage

    def modules(self) -> frozenset[str]:
        """The modules whose code it replaces: where that is written, not where it is called."""
        with pytest.MonkeyPatch.context() as patch:
            noting = _NotingPatch(patch)
            self.plant(cast("pytest.MonkeyPatch", noting))
            return frozenset(noting.modules)


class _NotingPatch:
    """Patches, and notes the module of everything that is replaced."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.modules: set[str] = set()
        self._patch = patch

    def setattr(self, target: Any, name: Any, *value: Any, **options: Any) -> None:
        if isinstance(target, str):
            where, _, attribute = target.rpartition(".")
            self._note(importlib.import_module(where), attribute, name)
        else:
            self._note(target, name, *value)
        self._patch.setattr(target, name, *value, **options)

    def setitem(self, mapping: Any, name: Any, value: Any) -> None:
        self.modules.update(_written_in(mapping[name], value) or _owners_of(mapping))
        self._patch.setitem(mapping, name, value)

    def _note(self, owner: Any, name: str, value: Any) -> None:
        former = getattr(owner, name, None)
        self.modules.update(_written_in(former, value) or {_module_of(owner)})


def _written_in(former: Any, value: Any) -> set[str]:
    """Nothing for a constant: its owner is where it is written."""
    if isinstance(former, Mapping) and isinstance(value, Mapping):
        return set(_of_entries(former, value))
    code = former.fget if isinstance(former, property) else former
    return {code.__module__} if hasattr(code, "__module__") and callable(code) else set()


def _of_entries(former: Mapping[Any, Any], value: Mapping[Any, Any]) -> Iterator[str]:
    for key, entry in former.items():
        if value.get(key) is not entry:
            yield entry.__module__


def _owners_of(constant: Any) -> set[str]:
    ours = [(name, one) for name, one in sys.modules.items() if name.startswith("penstock.")]
    return {name for name, one in ours if any(value is constant for value in vars(one).values())}


def _module_of(owner: Any) -> str:
    name: str = getattr(owner, "__module__", None) or owner.__name__
    return name
