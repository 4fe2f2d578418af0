"""A planted bug: its name, what it breaks, and how it is planted."""

import dataclasses
from collections.abc import Callable

import pytest

Sabotage = Callable[[pytest.MonkeyPatch], None]


@dataclasses.dataclass(frozen=True, slots=True)
class PlantedBug:
    name: str
    explanation: str
    plant: Sabotage
