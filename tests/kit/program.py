"""Runs the program as a user would: another process, its exit code and its two streams."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from typer.testing import CliRunner, Result

from penstock.cli.main import app


def penstock(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = 300,
) -> subprocess.CompletedProcess[str]:
    """`environment` is added to the present one."""
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        env={**os.environ, "COLUMNS": "200", **(environment or {})},
        cwd=cwd,
        timeout=timeout_s,
        capture_output=True,
        text=True,
        check=False,
    )


def invoked(*arguments: str) -> Result:
    """The program in this process: quicker, and what it raises can be looked at."""
    return CliRunner().invoke(app, list(arguments))
