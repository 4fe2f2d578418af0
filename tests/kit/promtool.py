"""Prometheus's own programs, from Debian's packages; without one a test is skipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = {
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
}


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: run setup/test_programs.sh, or install {PACKAGES[name]}")
    return found


def promtool(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def require_clean_metrics(text: str) -> None:
    """Prometheus's own check of names, units and help finds nothing."""
    done = promtool("check", "metrics", given=text)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
