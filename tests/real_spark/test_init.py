"""`penstock init`: what it writes is a start that works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.program import penstock


@pytest.mark.spark
def test_its_test_passes_and_its_settings_load(tmp_path: Path) -> None:
    """As a newcomer does: init, pytest, settings."""
    folder = tmp_path / "shop"
    made = penstock("init", str(folder))
    assert made.returncode == 0, made.stderr
    assert f"export PYTHONPATH={folder}" in made.stderr
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "1 passed" in tested.stdout, tested.stdout + tested.stderr
    shown = penstock("settings", "-o", "yaml", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "my_transformations:decode" in shown.stdout
