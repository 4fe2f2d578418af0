"""Checks the output of a run of the demo, in its full and its short form."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from kit.processes import processes_naming
from kit.program import penstock


def assert_the_demo_succeeds(
    out: Path,
    *options: str,
    partitions: int,
    timeout_s: float,
    run: Callable[..., subprocess.CompletedProcess[str]] = penstock,
) -> None:
    """Every record is stored once, all disruptions happened, and a picture is written.

    `run` calls the program: this checkout's, unless told otherwise.
    """
    done = run("demo", *options, "--out", str(out), timeout_s=timeout_s)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = dict(line.strip().rsplit("  ", 1) for line in done.stdout.splitlines() if "  " in line)
    figures = {name.strip(): value.strip() for name, value in rows.items()}
    assert figures["lost"] == figures["duplicated"] == "0", figures
    assert figures["records produced"] == figures["records in the lake"]
    assert re.search(r"consumer \d+ killed with -9", done.stderr)
    assert "controller killed with -9 during a move" in done.stderr
    assert f"grown to {partitions} partitions" in done.stderr
    assert (out / "demo.png").stat().st_size > 20_000
    assert "data:image/png" in (out / "demo.html").read_text(encoding="utf-8")
    assert processes_naming("penstock-demo-") == []
