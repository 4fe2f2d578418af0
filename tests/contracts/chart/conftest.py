"""Helm, once for all tests of the chart."""

from pathlib import Path

import pytest

from kit.kubernetes.helm import helm_program


@pytest.fixture(scope="session")
def helm() -> Path:
    """The program; compiled if this is the first run on the machine."""
    return helm_program()
