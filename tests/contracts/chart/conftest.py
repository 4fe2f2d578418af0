"""The Helm program, shared by all tests of the chart."""

from pathlib import Path

import pytest

from kit.kubernetes.helm import helm_program


@pytest.fixture(scope="session")
def helm() -> Path:
    """The Helm program; the first run on a machine compiles it."""
    return helm_program()
